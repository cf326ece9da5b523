import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { type GatewayError, McpManager, poolKey, shownPoolKey } from '../../src/index.js';
import { HttpUpstream } from '../support/http-upstream.js';
import {
  benchOf,
  Held,
  listChild,
  namesOf,
  openManager,
  remote,
  serve,
  toolList,
} from '../support/manager-bench.js';

const KEPT = { ttlMs: 600_000 };
const TOKENS = ['A', 'B', undefined];

function sha256(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

test('closing a server drops every list and connection of it, and nothing of a server named alike', async (t) => {
  const server = await serve(t, { on: { 'tools/list': () => toolList(['a'], KEPT) } });
  const shared = remote(server.url, { sharePublic: true });
  const { manager, outcomes } = openManager(t, { one: shared, oneX: shared });
  const listAll = async () => {
    for (const id of ['one', 'oneX']) for (const token of TOKENS) await manager.listTools(id, { token });
  };
  await listAll();
  assert.equal(manager.poolSize, 6);
  await manager.close('one');
  assert.equal(manager.poolSize, 3);
  await listAll();
  assert.deepEqual(outcomes().slice(6), ['miss', 'miss', 'miss', 'hit', 'hit', 'hit']);
});

test('closing a server drops its shared lists too', async (t) => {
  const list = () => toolList(['a'], { ...KEPT, cacheScope: 'public' });
  const { manager, server } = await benchOf(t, list, { entry: { sharePublic: true } });
  await manager.listTools('one', { token: 'A' });
  await manager.close('one');
  await manager.listTools('one', { token: 'B' });
  assert.equal(server.count('tools/list'), 2);
});

for (const [form, name] of [
  ['full', (key: string) => key],
  ['shown', shownPoolKey],
] as const)
  test(`closing a pool key in its ${form} form drops what belongs to that token only`, async (t) => {
    const { manager, outcomes } = await benchOf(t, () => toolList(['a'], KEPT));
    for (const token of TOKENS) await manager.listTools('one', { token });
    await manager.close(name(poolKey('one', sha256('A'))));
    assert.equal(manager.poolSize, 2);
    for (const token of TOKENS) await manager.listTools('one', { token });
    assert.deepEqual(outcomes().slice(3), ['miss', 'hit', 'hit']);
  });

test('closing ends the server’s session and its child', async (t) => {
  const server = await serve(t, { on: { 'tools/list': () => toolList(['a']) } });
  const { manager, events } = openManager(t, { one: remote(server.url), child: listChild() });
  await Promise.all([manager.listTools('one'), manager.listTools('child')]);
  await Promise.all([manager.close('one'), manager.close('child')]);
  assert.equal(server.deleted, 1);
  assert.equal(manager.poolSize, 0);
  const ended = events.all.filter((event) => event.type === 'server_disconnected');
  assert.deepEqual(ended.map((event) => [event.serverId, event.reason]).sort(), [
    ['child', 'closed'],
    ['one', 'closed'],
  ]);
});

test('a server that was closed is connected anew when it is asked', async (t) => {
  const { manager } = openManager(t, { child: listChild('--ttl=600000') });
  assert.deepEqual(namesOf(await manager.listTools('child')), ['listing-1']);
  await manager.close('child');
  assert.deepEqual(namesOf(await manager.listTools('child')), ['listing-1']);
  assert.equal(manager.poolSize, 1);
});

test('a listing under way when its server is closed gets its answer, which is not kept', async (t) => {
  const held = new Held<string>();
  const { manager, server } = await benchOf(t, () =>
    server.count('tools/list') < 3 ? held.next() : toolList(['kept'], KEPT),
  );
  const listing = manager.listTools('one');
  await held.received();
  const closed = manager.close('one');
  await held.received(2);
  await held.answer(toolList(['lost'], KEPT));
  await held.answer(toolList(['told'], KEPT));
  assert.deepEqual(namesOf(await listing), ['told']);
  await closed;
  assert.deepEqual(namesOf(await manager.listTools('one')), ['kept']);
});

test('a call under way when its server is closed fails as one of which nobody knows, and is not run again', async (t) => {
  const held = new Held<string>();
  const { manager, server } = await benchOf(t, () => toolList([]), {
    server: { on: { 'tools/call': held.next } },
  });
  const call = manager.callTool('one', 'pay');
  await held.received();
  await Promise.all([
    assert.rejects(call, { name: 'GatewayError', code: 'outcome_unknown' }),
    manager.close('one'),
  ]);
  assert.equal(server.count('tools/call'), 1);
});

test('requests that wait for a connection when it is closed are answered by the next one', async (t) => {
  const server = await serve(t, {
    on: { 'tools/list': () => toolList(['a']), 'tools/call': () => '{"content":[]}' },
  });
  const gate = new Held<void>();
  let first = true;
  const { manager } = openManager(t, { one: remote(server.url) });
  const token = async () => {
    if (first) await gate.next();
    return undefined;
  };
  const calls = Array.from({ length: 5 }, () => manager.callTool('one', 'a', {}, { token }));
  await gate.received(5);
  first = false;
  for (let i = 0; i < 5; i++) await gate.answer();
  await server.until(() => server.count('initialize') === 1);
  await manager.close('one');
  for (const result of await Promise.all(calls)) assert.deepEqual(result, { content: [] });
  assert.equal(server.count('tools/call'), 5);
});

test('closing an unknown server is an error that names those there are, closing a disabled one is nothing', async (t) => {
  const { manager } = openManager(t, { one: listChild(), broken: { url: 'no url' } });
  await assert.rejects(manager.close('onee'), (failure: GatewayError) => {
    assert.equal(failure.code, 'server_unknown');
    assert.match(failure.message, /"onee".*"one", "broken"/);
    return true;
  });
  await manager.close('broken');
  await manager.close('one#0123456789ab');
});

test('after closeAll there is nothing left, and every use is a clear error', async (t) => {
  const server = await serve(t, { on: { 'tools/list': () => toolList(['a'], KEPT) } });
  const { manager } = openManager(t, { one: remote(server.url), child: listChild() });
  await Promise.all(['one', 'child'].map((id) => manager.listTools(id)));
  await manager.closeAll();
  assert.equal(manager.poolSize, 0);
  assert.equal(server.openSessions, 0);
  const uses = [
    () => manager.listTools('one'),
    () => manager.callTool('one', 'a'),
    () => manager.serverInfo('child'),
    () => manager.request('nowhere', 'ping'),
  ];
  for (const use of uses)
    await assert.rejects(use(), { name: 'GatewayError', code: 'shutting_down', message: /closeAll/ });
  await manager.closeAll();
  await manager.close('one');
});

test('a manager goes with the block that disposes of it', async (t) => {
  const server = await serve(t, { on: { 'tools/list': () => toolList(['a']) } });
  const manager = new McpManager({ mcpServers: { one: remote(server.url) } });
  await manager.listTools('one');
  await manager[Symbol.asyncDispose]();
  assert.equal(server.openSessions, 0);
});

test('closeAll does not wait for a server that never answers the handshake, and those who wait are told', async (t) => {
  const upstream = await HttpUpstream.start();
  t.after(() => upstream.stop());
  upstream.on('POST', '/mcp', () => {});
  const { manager } = openManager(t, { one: remote(upstream.url()) });
  const told = assert.rejects(manager.listTools('one'), { code: 'server_unavailable', message: /"one"/ });
  await upstream.received('server/discover');
  await manager.closeAll();
  await told;
});
