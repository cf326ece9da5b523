import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { GatewayError } from '../../src/base/errors.js';
import type { Message } from '../../src/wire/message.js';
import { CHILD, handlesBackTo, isAlive, openHandles, openPeer, type Peer } from '../support/stdio-harness.js';

function unavailable(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'server_unavailable';
}

async function wrappedPid(peer: Peer): Promise<number> {
  const message = await peer.messages.first((each) => each.method === 'notifications/wrapped');
  return (JSON.parse(message.bytes.toString()) as { params: { pid: number } }).params.pid;
}

test('closed links leave no handle, listener or timer', { timeout: 20_000 }, async (t) => {
  const before = openHandles();
  const listeners = process.eventNames().map((name) => process.listenerCount(name));
  for (const flags of [[], ['--stubborn'], ['--exit=1'], ['--wrap=quiet'], ['--wrap=holding']]) {
    const peer = await openPeer(t, flags, { options: { lastWordsMs: 50 } });
    await peer.link.close();
  }
  await handlesBackTo(before);
  assert.deepEqual(
    process.eventNames().map((name) => process.listenerCount(name)),
    listeners,
  );
});

test('a crash is reported with the exit code and the last words, an unfinished line included', async (t) => {
  const peer = await openPeer(t, []);
  await peer.ask(1, 'exit', { code: 3, stderr: 'Traceback:\n  boom\nno line end' });
  const error = await peer.closed.first(() => true);
  assert.ok(unavailable(error));
  assert.equal(
    error.message,
    'Server "files" exited with code 3; its last words: Traceback:\nboom\nno line end',
  );
  assert.equal(error.details.serverId, 'files');
});

test('a child that is killed from outside is reported with the signal', async (t) => {
  const peer = await openPeer(t, []);
  process.kill((await peer.call(1, 'pid')) as number, 'SIGKILL');
  assert.equal((await peer.closed.first(() => true)).message, 'Server "files" was ended by SIGKILL');
});

test('the last words show the name of a declared variable instead of its value', async (t) => {
  const env = { API_KEY: 'token-0123456789' };
  const peer = await openPeer(t, ['--exit=1', `--complain=invalid ${env.API_KEY}`], { target: { env } });
  assert.match((await peer.closed.first(() => true)).message, /last words: invalid \$\{API_KEY\}$/);
});

test('a child that exits at once says why, and what is sent meanwhile fails without harm', async (t) => {
  const peer = await openPeer(t, ['--exit=1', '--complain=bad configuration']);
  const sends = Array.from({ length: 20 }, (_, id) => peer.ask(id, 'echo', { text: 'x'.repeat(100_000) }));
  const outcomes = await Promise.allSettled(sends);
  const reasons = new Set(outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason] : [])));
  const error = await peer.closed.first(() => true);
  assert.match(error.message, /exited with code 1; its last words: bad configuration/);
  assert.deepEqual([...reasons], [error]);
});

test('everything written before the exit is delivered before the end is reported', async (t) => {
  const line = (id: number): string => `{"jsonrpc":"2.0","id":${id},"result":{}}`;
  const text = Array.from({ length: 2000 }, (_, id) => line(id)).join('\n');
  const order: string[] = [];
  const peer = await openPeer(t, [`--say=${Buffer.from(text).toString('base64')}`, '--exit=0'], {
    onMessage: (message: Message) => {
      assert.equal(peer.closed.all.length, 0);
      order.push(message.id);
    },
  });
  assert.equal((await peer.closed.first(() => true)).message, 'Server "files" exited with code 0');
  assert.equal(order.length, 2000);
  assert.equal(order.at(-1), '1999');
});

test('a child that exits between a request and a notification harms nobody', async (t) => {
  const peer = await openPeer(t, []);
  await peer.ask(1, 'exit');
  const error = await peer.closed.first(() => true);
  await assert.rejects(peer.tell('notifications/x'), error);
  await assert.rejects(peer.ask(2, 'echo'), error);
  assert.equal(peer.closed.all.length, 1);
});

test('a child that exits on a notification fails the request behind it or ends without its answer', async (t) => {
  const peer = await openPeer(t, []);
  await peer.tell('notifications/exit', { code: 4 });
  await peer.ask(2, 'echo').catch((error: unknown) => assert.ok(unavailable(error)));
  assert.match((await peer.closed.first(() => true)).message, /exited with code 4/);
  assert.equal(peer.messages.all.length, 0);
});

test('a child that closes its input and lives is given up', async (t) => {
  const peer = await openPeer(t, [], { options: { lastWordsMs: 50 } });
  const pid = (await peer.call(1, 'pid')) as number;
  await peer.ask(2, 'closeInput');
  // Nothing tells that the other end is shut: the first write that fails does.
  const failed = assert.rejects(async () => {
    for (let id = 3; ; id++) await peer.ask(id, 'echo', { text: 'x'.repeat(1_000_000) });
  }, /Server "files" closed its input/);
  assert.ok(unavailable(await peer.closed.first(() => true)));
  await failed;
  await peer.link.close();
  assert.equal(isAlive(pid), false);
});

test('a child that closes its output and lives is given up', async (t) => {
  const peer = await openPeer(t, [], { options: { lastWordsMs: 50 } });
  await peer.ask(1, 'closeOutput');
  const error = await peer.closed.first(() => true);
  assert.equal(error.message, 'Server "files" closed its output');
  await peer.link.close();
  assert.equal(peer.children.size, 0);
});

test('an orderly close ends the child by the end of its input alone', async (t) => {
  const peer = await openPeer(t, [], { options: { closeGraceMs: 3_600_000 } });
  const pid = (await peer.call(1, 'pid')) as number;
  await peer.link.close();
  assert.equal(isAlive(pid), false);
  assert.equal(peer.children.size, 0);
});

test('what was sent just before a close still reaches the child', async (t) => {
  const peer = await openPeer(t, [], { options: { closeGraceMs: 3_600_000 } });
  const sent = peer.tell('notifications/exit', { stderr: `cancelled ${'x'.repeat(1000)}` });
  await peer.link.close();
  await sent;
  assert.ok(
    peer.events.all.some((event) => event.type === 'server_stderr' && event.line.startsWith('cancelled')),
  );
});

test('nothing is reported after a close: no message and no end', async (t) => {
  const peer = await openPeer(t, []);
  await peer.ask(1, 'echo');
  await peer.link.close();
  assert.deepEqual([peer.messages.all, peer.closed.all], [[], []]);
  await assert.rejects(peer.ask(2, 'echo'), /Server "files" was closed/);
});

test('a close in the midst of a chunk stops the messages behind it', async (t) => {
  const text = '{"jsonrpc":"2.0","method":"notifications/x"}\n'.repeat(10);
  let closing: Promise<void> | undefined;
  const peer = await openPeer(t, [`--say=${Buffer.from(text).toString('base64')}`], {
    onMessage: (_message, link) => {
      closing = link.close();
    },
  });
  await peer.messages.first(() => true);
  await closing;
  assert.equal(peer.messages.all.length, 1);
});

test('a child that ignores the end of its input goes on SIGTERM', async (t) => {
  const peer = await openPeer(t, ['--linger'], { options: { termGraceMs: 3_600_000 } });
  const pid = (await peer.call(1, 'pid')) as number;
  await peer.link.close();
  assert.equal(isAlive(pid), false);
});

test('a child that ignores the end of its input and SIGTERM is gone after a close', async (t) => {
  const peer = await openPeer(t, ['--stubborn']);
  const pid = (await peer.call(1, 'pid')) as number;
  await peer.link.close();
  assert.equal(isAlive(pid), false);
  assert.equal(peer.children.size, 0);
});

test('concurrent closes share one run and all wait for the end', async (t) => {
  const peer = await openPeer(t, ['--stubborn']);
  const pid = (await peer.call(1, 'pid')) as number;
  const closes = [peer.link.close(), peer.link.close()];
  await Promise.race(closes);
  assert.equal(isAlive(pid), false);
  await Promise.all([...closes, peer.link.close()]);
});

test('a stubborn descendant is gone after a close though its wrapper left at once', async (t) => {
  const peer = await openPeer(t, ['--wrap=quiet']);
  const pid = await wrappedPid(peer);
  assert.equal(isAlive(pid), true);
  await peer.link.close();
  assert.equal(isAlive(pid), false);
  assert.equal(peer.children.size, 0);
});

test('a descendant that holds the pipes does not delay the report of an exit, and is ended too', async (t) => {
  const peer = await openPeer(t, ['--wrap=holding', '--complain=unfinished'], {
    options: { lastWordsMs: 50 },
  });
  const pid = await wrappedPid(peer);
  const error = await peer.closed.first(() => true);
  assert.equal(error.message, 'Server "files" exited with code 0; its last words: unfinished');
  await peer.link.close();
  assert.equal(isAlive(pid), false);
  assert.equal(peer.children.size, 0);
});

test('what a descendant writes after its wrapper left is delivered before the end is reported', async (t) => {
  const say = `--say=${Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}').toString('base64')}`;
  const script = `"${process.execPath}" "${CHILD}" ${say} --complain=late --exit=0 & exit 5`;
  const peer = await openPeer(t, [], {
    target: { command: '/bin/sh', args: ['-c', script] },
    options: { lastWordsMs: 3_600_000 },
  });
  const error = await peer.closed.first(() => true);
  assert.equal(error.message, 'Server "files" exited with code 5; its last words: late');
  assert.equal(peer.messages.all.length, 1);
});

test('an exit stays the reason of the end though the input broke after it', async (t) => {
  const peer = await openPeer(t, ['--wrap=holding'], { options: { lastWordsMs: 50 } });
  await assert.rejects(async () => {
    for (let id = 0; ; id++) await peer.ask(id, 'echo', {});
  }, /Server "files" exited with code 0/);
});

test('a descendant that left the process group keeps no pipe of ours open', {
  timeout: 10_000,
}, async (t) => {
  const before = openHandles();
  const peer = await openPeer(t, ['--wrap=escaping'], { options: { lastWordsMs: 50 } });
  const pid = await wrappedPid(peer);
  t.after(() => process.kill(pid, 'SIGKILL'));
  await peer.link.close();
  await handlesBackTo(before);
});

test('a command that a shell starts is ended with the shell', async (t) => {
  const script = `"${process.execPath}" -e 'process.on("SIGTERM",()=>{});setInterval(()=>{},1e3);console.log(JSON.stringify({jsonrpc:"2.0",method:"notifications/wrapped",params:{pid:process.pid}}))'; true`;
  const peer = await openPeer(t, [], { target: { command: '/bin/sh', args: ['-c', script] } });
  const pid = await wrappedPid(peer);
  await peer.link.close();
  assert.equal(isAlive(pid), false);
});

test('the registry kills every child and descendant at once', async (t) => {
  const peer = await openPeer(t, ['--wrap=quiet']);
  const pid = await wrappedPid(peer);
  assert.equal(peer.children.size, 1);
  peer.children.killAllChildren();
  assert.equal((await peer.closed.first(() => true)).message, 'Server "files" was ended by SIGKILL');
  await peer.link.close();
  assert.equal(isAlive(pid), false);
});

test('a child that crashed is in the registry no more', async (t) => {
  const peer = await openPeer(t, ['--exit=1']);
  await peer.closed.first(() => true);
  assert.equal(peer.children.size, 0);
});

for (const [act, behaviour] of [
  ['close', 'a process that has nothing left to do but a close finishes it'],
  ['exit', 'a process that exits takes its children and their descendants with it'],
] as const) {
  test(behaviour, { timeout: 20_000 }, async () => {
    const program = fileURLToPath(new URL('../support/stdio-last-act.ts', import.meta.url));
    const args = ['--import', 'tsx', program, act];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    await once(child, 'close');
    const pid = Number(new RegExp(`^${act} (\\d+)$`, 'm').exec(text)?.[1]);
    assert.ok(pid > 0, text);
    // A SIGKILL is sent for certain, and obeyed a moment later.
    while (isAlive(pid)) await new Promise(setImmediate);
  });
}
