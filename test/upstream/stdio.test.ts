import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/base/errors.js';
import { notification } from '../../src/protocol/compose.js';
import { readMessage } from '../../src/wire/message.js';
import { openPeer } from '../support/stdio-harness.js';

const MEGABYTE = 1024 * 1024;
const base64 = (text: string): string => Buffer.from(text).toString('base64');

test('messages go both ways in their order', async (t) => {
  const peer = await openPeer(t, []);
  const ids = Array.from({ length: 100 }, (_, i) => i);
  await Promise.all(ids.map((id) => peer.ask(id, 'echo', { id })));
  await peer.messages.first((message) => message.id === '99');
  assert.deepEqual(
    peer.messages.all.map((message) => message.id),
    ids.map(String),
  );
});

test('a message that was written over several lines reaches the child as one', async (t) => {
  const peer = await openPeer(t, []);
  await peer.link.send(
    readMessage(Buffer.from('{\r\n"jsonrpc":"2.0",\n"id":7,"method":"echo",\n"params":{"a":1}}')),
  );
  const answer = await peer.messages.first(() => true);
  assert.equal(answer.bytes.toString(), '{"jsonrpc":"2.0","id":7,"result":{"a":1}}');
});

test('a message keeps its bytes', async (t) => {
  const text = '{ "id":9007199254740993,\t"jsonrpc":"2.0","result":{"n":1e400,"z":-0,"s":"\\u00fc"} }';
  const peer = await openPeer(t, [`--say=${base64(`  ${text} \r\n`)}`]);
  assert.equal((await peer.messages.first(() => true)).bytes.toString(), text);
});

test('a child that floods stderr before each answer is not blocked by it, with line ends or without', async (t) => {
  const peer = await openPeer(t, []);
  const floods = ['x'.repeat(4096), `${'y'.repeat(63)}\n`, 'z'.repeat(262_144)];
  for (const [id, line] of floods.entries())
    assert.equal(await peer.call(id, 'flood', { line, times: 262_144 / line.length }), 'flooded');
  await peer.link.close();
  // The last summary comes when the pipe of stderr is closed, which nobody waits for.
  const summary = /^\[\d+ lines suppressed\]$/;
  await peer.events.first((event) => event.type === 'server_stderr' && summary.test(event.line));
  const lines = peer.events.all.flatMap((event) => (event.type === 'server_stderr' ? [event.line] : []));
  assert.equal(lines[0], 'x'.repeat(2048));
  assert.ok(lines.length < 1000, `${lines.length} lines`);
});

test('noise on stdout is skipped, counted and reported, and the connection lives', async (t) => {
  const noise = [
    'Server v1.0 is ready',
    '{broken',
    '123',
    'null',
    '[]',
    '\u001b[32mok\u001b[0m',
    '{"jsonrpc":"1.0"}',
  ];
  const batch = '[{"jsonrpc":"2.0","id":1,"result":{}}]';
  const text = [...noise, batch, '', '  ', '\r', 'ten', 'lines'].join('\n');
  const peer = await openPeer(t, [`--say=${base64(`${text}\n`)}`]);
  assert.deepEqual(await peer.call(1, 'echo', { a: 1 }), { a: 1 });
  assert.equal(peer.messages.all.length, 1);
  assert.deepEqual(peer.events.all, [
    { type: 'server_noise', serverId: 'files', sample: 'Server v1.0 is ready', total: 1 },
    { type: 'server_noise', serverId: 'files', sample: 'lines', total: 10 },
  ]);
});

test('a sample of noise is short, and shows no declared value and no terminal code', async (t) => {
  const secret = 'token-0123456789';
  const say = `--say=${base64(`\u001b[1m${secret} ${'x'.repeat(MEGABYTE)}\n`)}`;
  const peer = await openPeer(t, [], { target: { env: { API_KEY: secret } } });
  await peer.ask(1, 'raw', { pieces: [say.slice('--say='.length)] });
  const event = await peer.events.first((each) => each.type === 'server_noise');
  assert.ok(event.type === 'server_noise' && event.sample.startsWith(`\${API_KEY} xxx`));
  assert.equal(event.sample.length, 200);
});

test('characters that come byte by byte arrive whole', async (t) => {
  const peer = await openPeer(t, []);
  const bytes = Buffer.from('{"jsonrpc":"2.0","method":"notifications/x","params":{"text":"🦊 ü"}}\n');
  await peer.ask(1, 'raw', { pieces: [...bytes].map((byte) => Buffer.from([byte]).toString('base64')) });
  const message = await peer.messages.first(() => true);
  assert.deepEqual(JSON.parse(message.bytes.toString()).params, { text: '🦊 ü' });
});

for (const megabytes of [0.1, 5, 50]) {
  test(`an answer of ${megabytes} MB arrives whole`, async (t) => {
    const peer = await openPeer(t, []);
    const bytes = Math.ceil(megabytes * MEGABYTE);
    const text = (await peer.call(1, 'big', { bytes })) as string;
    assert.equal(text.length, bytes);
  });
}

test('a request of 5 MB arrives whole', async (t) => {
  const peer = await openPeer(t, []);
  const text = 'x'.repeat(5 * MEGABYTE);
  assert.deepEqual(await peer.call(1, 'echo', { text }), { text });
});

test('a line that never ends fails its connection cleanly', async (t) => {
  const peer = await openPeer(t, [], { options: { maxLineBytes: MEGABYTE } });
  await peer.ask(1, 'endless', { bytes: 1024 * MEGABYTE });
  const error = await peer.closed.first(() => true);
  assert.equal(error.code, 'too_large');
  assert.equal(error.message, 'Server "files" sent a line above the limit of 1048576 bytes');
  await peer.link.close();
  assert.equal(peer.children.size, 0);
  assert.equal(peer.closed.all.length, 1);
});

test('a message before a line above the limit is delivered, and none after it', async (t) => {
  const peer = await openPeer(t, [], { options: { maxLineBytes: 1000 } });
  const text = (id: number, filler = ''): string => `{"jsonrpc":"2.0","id":${id},"result":"${filler}"}\n`;
  const piece = base64(text(1) + text(2, 'x'.repeat(1000)) + text(3));
  await peer.ask(9, 'raw', { pieces: [piece] });
  assert.equal((await peer.closed.first(() => true)).code, 'too_large');
  assert.deepEqual(
    peer.messages.all.map((message) => message.id),
    ['1'],
  );
});

test('a send after the connection failed is refused with the reason', async (t) => {
  const peer = await openPeer(t, [], { options: { maxLineBytes: 1000 } });
  await peer.ask(1, 'big', { bytes: 2000 });
  const error = await peer.closed.first(() => true);
  await assert.rejects(peer.tell('notifications/x'), error);
});

test('a child that does not read holds its senders back, and too many are refused', async (t) => {
  const peer = await openPeer(t, ['--deaf'], { options: { maxLineBytes: 4 * MEGABYTE } });
  const big = notification('notifications/x', { text: 'x'.repeat(3 * MEGABYTE) });
  const held = peer.link.send(big);
  const abort = new AbortController();
  const withdrawn = peer.link.send(notification('notifications/y'), abort.signal);
  await assert.rejects(
    peer.link.send(big),
    (error) => error instanceof GatewayError && error.code === 'at_capacity',
  );
  abort.abort();
  await assert.rejects(withdrawn, (error) => error instanceof GatewayError && error.code === 'cancelled');
  const outcome = assert.rejects(held, /Server "files" was closed/);
  await peer.link.close();
  await outcome;
});
