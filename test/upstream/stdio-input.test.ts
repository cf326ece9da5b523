import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { GatewayError } from '../../src/base/errors.js';
import { ChildInput } from '../../src/upstream/stdio-input.js';

/** A pipe whose reader takes a write only when told to. */
function slowPipe() {
  const written: string[] = [];
  const waiting: ((error?: Error) => void)[] = [];
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      written.push(chunk.toString());
      waiting.push(done);
    },
  });
  const step = async (error?: Error): Promise<void> => {
    waiting.shift()?.(error);
    await new Promise(setImmediate);
  };
  return { stream, written, step };
}

function input(pipe: Writable, maxQueuedBytes = 1000) {
  let breaks = 0;
  const child = new ChildInput('files', pipe, maxQueuedBytes, () => breaks++);
  return { child, breaks: () => breaks };
}

/** Bytes of buffers that something still refers to. */
function heldBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().arrayBuffers;
}

const line = (text: string): Buffer => Buffer.from(`${text}\n`);
const code = (wanted: string) => (error: unknown) => error instanceof GatewayError && error.code === wanted;

test('a write resolves when the pipe has taken it, and the next begins only then', async () => {
  const pipe = slowPipe();
  const { child } = input(pipe.stream);
  let settled = 0;
  const writes = ['a', 'b', 'c'].map((text) => child.write(line(text)).then(() => settled++));
  await pipe.step();
  assert.deepEqual([pipe.written, settled], [['a\n', 'b\n'], 1]);
  await pipe.step();
  await pipe.step();
  await Promise.all(writes);
  assert.deepEqual(pipe.written, ['a\n', 'b\n', 'c\n']);
});

test('when the pipe breaks, the line being written and those behind it fail with the reason of the end', async () => {
  const pipe = slowPipe();
  const { child, breaks } = input(pipe.stream);
  const first = child.write(line('taken'));
  const rest = ['a', 'b', 'c'].map((text) => child.write(line(text)));
  const outcomes = Promise.allSettled(rest);
  await pipe.step();
  await first;
  await pipe.step(new Error('EPIPE'));
  assert.equal(breaks(), 1);
  const reason = new GatewayError('server_unavailable', 'gone');
  child.fail(reason);
  for (const outcome of await outcomes) assert.deepEqual(outcome, { status: 'rejected', reason });
  await assert.rejects(child.write(line('later')), reason);
  assert.deepEqual(pipe.written, ['taken\n', 'a\n']);
});

test('a line whose caller left is not written, and its neighbours are', async () => {
  const pipe = slowPipe();
  const { child } = input(pipe.stream);
  const abort = new AbortController();
  const first = child.write(line('first'));
  const withdrawn = child.write(line('withdrawn'), abort.signal);
  const last = child.write(line('last'));
  abort.abort();
  await assert.rejects(withdrawn, code('cancelled'));
  await pipe.step();
  await pipe.step();
  await Promise.all([first, last]);
  assert.deepEqual(pipe.written, ['first\n', 'last\n']);
});

test('a line that is being written is finished, and counts, though its caller left', async () => {
  const pipe = slowPipe();
  const { child } = input(pipe.stream, 8);
  const abort = new AbortController();
  const withdrawn = child.write(line('half'), abort.signal);
  abort.abort();
  await assert.rejects(withdrawn, code('cancelled'));
  await assert.rejects(child.write(line('next')), code('at_capacity'));
  await pipe.step();
  const next = child.write(line('next'));
  await pipe.step();
  await next;
  assert.deepEqual(pipe.written, ['half\n', 'next\n']);
});

test('a caller who had left before is refused and nothing is written', async () => {
  const pipe = slowPipe();
  const { child } = input(pipe.stream);
  await assert.rejects(child.write(line('a'), AbortSignal.abort()), code('cancelled'));
  assert.deepEqual(pipe.written, []);
});

test('more than a queue may hold is refused until the reader catches up', async () => {
  const pipe = slowPipe();
  const { child } = input(pipe.stream, 10);
  const large = child.write(line('larger than the queue'));
  await assert.rejects(child.write(line('b')), code('at_capacity'));
  await pipe.step();
  await large;
  const next = child.write(line('c'));
  await pipe.step();
  await next;
});

test('withdrawn lines leave room for others and are not kept in memory', async () => {
  const pipe = slowPipe();
  const { child } = input(pipe.stream, 200_000);
  const first = child.write(line('first'));
  const before = heldBytes();
  for (let i = 0; i < 1000; i++) {
    const abort = new AbortController();
    const write = child.write(Buffer.alloc(100_000), abort.signal);
    abort.abort();
    await assert.rejects(write, code('cancelled'));
  }
  const grown = heldBytes() - before;
  assert.ok(grown < 20_000_000, `${grown} bytes`);
  const last = child.write(line('last'));
  await pipe.step();
  await pipe.step();
  await Promise.all([first, last]);
  assert.deepEqual(pipe.written, ['first\n', 'last\n']);
});

test('the end of the input comes after everything that waits', async () => {
  const pipe = slowPipe();
  const { child } = input(pipe.stream);
  const writes = [child.write(line('a')), child.write(line('b'))];
  child.end();
  assert.equal(pipe.stream.writableEnded, false);
  await pipe.step();
  await pipe.step();
  await Promise.all(writes);
  assert.equal(pipe.stream.writableEnded, true);
});

test('a caller who stays keeps no listener on its signal', async () => {
  const pipe = slowPipe();
  const { child } = input(pipe.stream);
  const abort = new AbortController();
  const write = child.write(line('a'), abort.signal);
  await pipe.step();
  await write;
  assert.equal(getEventListeners(abort.signal, 'abort').length, 0);
});
