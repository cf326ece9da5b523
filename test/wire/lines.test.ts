import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../src/base/errors.js';
import { frameLine, LineReader } from '../../src/wire/lines.js';

const MEGABYTE = 1024 * 1024;

function reader(maxLineBytes = MEGABYTE): { lines: string[]; reader: LineReader } {
  const lines: string[] = [];
  return { lines, reader: new LineReader(maxLineBytes, (line) => lines.push(line.toString())) };
}

function isTooLarge(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'too_large';
}

test('a line ends at LF, and a CR before it is dropped', () => {
  const { lines, reader: read } = reader();
  read.push(Buffer.from('a\nb\r\n\r\n\nc\rd\n'));
  assert.deepEqual(lines, ['a', 'b', '', '', 'c\rd']);
});

test('a CR and its LF may come in different chunks', () => {
  const { lines, reader: read } = reader();
  for (const chunk of ['a\r', '\nb', '\r', '\n', '\r', '\n']) read.push(Buffer.from(chunk));
  assert.deepEqual(lines, ['a', 'b', '']);
});

test('characters cut between chunks come out whole', () => {
  const { lines, reader: read } = reader();
  for (const byte of Buffer.from('{"emoji":"🦊","umlaut":"ü"}\n')) read.push(Buffer.from([byte]));
  assert.deepEqual(lines, ['{"emoji":"🦊","umlaut":"ü"}']);
});

test('however a stream is cut, its lines are the same', () => {
  const bytes = fc
    .uint8Array({ maxLength: 200 })
    .map((raw) => raw.map((byte) => [10, 13, 97, 98][byte & 3] ?? 0));
  const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 });
  fc.assert(
    fc.property(bytes, sizes, (raw, cuts) => {
      const stream = Buffer.concat([raw, Buffer.from('\n')]);
      const { lines, reader: read } = reader();
      for (let at = 0, i = 0; at < stream.length; i++) {
        const size = cuts[i % cuts.length] as number;
        read.push(stream.subarray(at, at + size));
        at += size;
      }
      const expected = stream.toString().split('\n').slice(0, -1);
      assert.deepEqual(
        lines,
        expected.map((line) => line.replace(/\r$/, '')),
      );
    }),
  );
});

test('what stands behind the last line end is a line when the stream is over', () => {
  const { lines, reader: read } = reader();
  read.push(Buffer.from('a\nb\r'));
  read.end();
  read.end();
  assert.deepEqual(lines, ['a', 'b']);
});

test('a stream that ends with a line end has no further line', () => {
  const { lines, reader: read } = reader();
  read.push(Buffer.from('a\n'));
  read.end();
  assert.deepEqual(lines, ['a']);
});

test('a line of exactly the limit passes, with either line end, in one chunk and in many', () => {
  for (const end of ['\n', '\r\n']) {
    const { lines, reader: read } = reader(4);
    read.push(Buffer.from(`abcd${end}`));
    for (const char of `efgh${end}`) read.push(Buffer.from(char));
    assert.deepEqual(lines, ['abcd', 'efgh']);
  }
});

test('a line above the limit is refused before its end comes', () => {
  const { lines, reader: read } = reader(4);
  read.push(Buffer.from('abcd'));
  assert.throws(() => read.push(Buffer.from('e')), isTooLarge);
  assert.deepEqual(lines, []);
});

test('a CR inside a line counts', () => {
  const { reader: read } = reader(4);
  read.push(Buffer.from('abcd\r'));
  assert.throws(() => read.push(Buffer.from('e')), isTooLarge);
});

test('lines before a line above the limit are delivered first, and none after it', () => {
  const { lines, reader: read } = reader(4);
  assert.throws(() => read.push(Buffer.from('ab\nabcdef\ncd\n')), isTooLarge);
  read.push(Buffer.from('ef\n'));
  read.end();
  assert.deepEqual(lines, ['ab']);
});

test('a stream without line ends holds no more than the limit', () => {
  const { reader: read } = reader(MEGABYTE);
  const chunk = Buffer.alloc(64 * 1024, 0x78);
  for (let i = 0; i < 16; i++) read.push(chunk);
  assert.throws(() => read.push(chunk), isTooLarge);
});

test('a line of 50 MB in chunks of 64 KB is joined once', { timeout: 60_000 }, (t) => {
  const concat = t.mock.method(Buffer, 'concat');
  let length = 0;
  const read = new LineReader(64 * MEGABYTE, (line) => {
    length = line.length;
  });
  for (let i = 0; i < 800; i++) read.push(Buffer.alloc(64 * 1024, 0x78));
  read.push(Buffer.from('\n'));
  assert.equal(length, 50 * MEGABYTE);
  assert.equal(concat.mock.callCount(), 1);
});

test('a line that trickles in byte by byte takes little more memory than its length', () => {
  const read = new LineReader(64 * MEGABYTE, () => {});
  const before = process.memoryUsage();
  for (let i = 0; i < 4 * MEGABYTE; i++) read.push(Buffer.from('x'));
  const after = process.memoryUsage();
  const grown = after.heapUsed + after.external - before.heapUsed - before.external;
  assert.ok(grown < 64 * MEGABYTE, `${grown} bytes`);
});

test('a framed message is one line, its own white space included', () => {
  const pretty = '{\r\n  "jsonrpc": "2.0",\n\t"method": "a\\nb"\r}';
  const line = frameLine(Buffer.from(pretty)).toString();
  assert.equal(line, '{    "jsonrpc": "2.0", \t"method": "a\\nb" }\n');
  assert.deepEqual(JSON.parse(line), JSON.parse(pretty));
});

test('framing leaves the message itself as it was', () => {
  const message = Buffer.from('{\n}');
  frameLine(message);
  assert.equal(message.toString(), '{\n}');
});
