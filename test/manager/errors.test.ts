import assert from 'node:assert/strict';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  benchOf,
  Held,
  LIST_CHILD,
  listChild,
  namesOf,
  openManager,
  remote,
  serve,
  toolList,
} from '../support/manager-bench.js';
import { Refusal } from '../support/mcp-server.js';

const KEPT = { ttlMs: 600_000 };
const MINUTE = 60_000;

test('a hit needs no connection', async (t) => {
  const { manager, server, clock, events } = await benchOf(t, () => toolList(['a'], KEPT), {
    settings: { connectionIdleMs: 1_000 },
  });
  await manager.listTools('one');
  clock.advance(2_000);
  await events.first(({ type }) => type === 'server_disconnected');
  assert.equal(manager.poolSize, 0);
  assert.deepEqual(namesOf(await manager.listTools('one')), ['a']);
  assert.equal(manager.poolSize, 0);
  assert.equal(server.count('initialize'), 1);
});

test('a list is served while its server is down, for its TTL and not longer', async (t) => {
  const { manager, server, clock } = await benchOf(t, () => toolList(['a'], { ttlMs: MINUTE }));
  await manager.listTools('one');
  await server.until(() => server.openStreams === 1);
  server.forgetSessions();
  await clock.armed((delayMs) => delayMs <= 1_000);
  const { port } = server;
  await server.close();
  clock.advance(MINUTE - 1);
  assert.deepEqual(namesOf(await manager.listTools('one')), ['a']);
  clock.advance(1);
  await assert.rejects(manager.listTools('one'), { name: 'GatewayError', message: /"one"/ });
  const back = await serve(t, { on: { 'tools/list': () => toolList(['b']) } }, port);
  clock.advance(MINUTE);
  assert.deepEqual(namesOf(await manager.listTools('one')), ['b']);
  assert.equal(back.count('tools/list'), 1);
});

test('a list is served while its child is gone and cannot be started again', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sidegate-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const script = join(folder, 'server.mjs');
  await copyFile(LIST_CHILD, script);
  const child = { command: process.execPath, args: [script, '--ttl=600000', '--once'] };
  const { manager, events } = openManager(t, { one: child });
  await manager.listTools('one');
  await events.first((event) => event.type === 'server_disconnected' && event.reason === 'lost');
  await rm(script);
  assert.deepEqual(namesOf(await manager.listTools('one')), ['listing-1']);
  assert.ok(events.all.some(({ type }) => type === 'server_connect_failed'));
});

test('an error of the server is thrown and not kept', async (t) => {
  let broken = true;
  const { manager, server } = await benchOf(t, () => {
    if (broken) throw new Refusal(-32603, 'Not yet', { retry: true });
    return toolList(['a'], KEPT);
  });
  for (let i = 0; i < 2; i++)
    await assert.rejects(manager.listTools('one'), {
      name: 'ServerError',
      code: -32603,
      message: 'Not yet',
      data: { retry: true },
    });
  broken = false;
  for (let i = 0; i < 2; i++) assert.deepEqual(namesOf(await manager.listTools('one')), ['a']);
  assert.equal(server.count('tools/list'), 3);
});

test('a fresh listing that fails leaves the list that is still fresh', async (t) => {
  let broken = false;
  const { manager, server } = await benchOf(t, () => {
    if (broken) throw new Refusal(-32603, 'Down');
    return toolList(['a'], KEPT);
  });
  await manager.listTools('one');
  broken = true;
  await assert.rejects(manager.listTools('one', { fresh: true }), { code: -32603 });
  assert.deepEqual(namesOf(await manager.listTools('one')), ['a']);
  assert.equal(server.count('tools/list'), 2);
});

test('an empty list is an entry like any other', async (t) => {
  const { manager, server } = await benchOf(t, () => toolList([], KEPT));
  for (let i = 0; i < 2; i++) assert.deepEqual(await manager.listTools('one'), []);
  assert.equal(server.count('tools/list'), 1);
});

for (const result of ['{"tools":{}}', '{"tools":"none"}', '{}', '[]', 'null'])
  test(`${result} is no list: an error that names the server, and is not kept`, async (t) => {
    const answers = [result, toolList(['a'])];
    const { manager } = await benchOf(t, () => answers.shift() as string);
    await assert.rejects(manager.listTools('one'), { code: 'server_protocol', message: /"one".*tools/ });
    assert.deepEqual(namesOf(await manager.listTools('one')), ['a']);
  });

test('an answer that asks for more input is never kept', async (t) => {
  const input = JSON.stringify({ resultType: 'input_required', inputRequests: {}, contents: [], ...KEPT });
  const server = await serve(t, { on: { 'resources/read': () => input, 'server/discover': () => input } });
  const { manager } = openManager(t, { one: remote(server.url, { era: 'legacy' }) });
  for (let i = 0; i < 2; i++) {
    await manager.readResource('one', 'file:///a');
    await manager.request('one', 'server/discover');
  }
  assert.equal(server.count('resources/read'), 2);
  assert.equal(server.count('server/discover'), 2);
});

for (const more of [{ requestState: 's' }, { inputResponses: {} }])
  test(`an answer to a request with ${Object.keys(more)} is never kept, nor given from what is kept`, async (t) => {
    const read = () => JSON.stringify({ contents: [], ...KEPT });
    const server = await serve(t, { on: { 'resources/read': read } });
    const { manager } = openManager(t, { one: remote(server.url) });
    const uri = 'file:///a';
    await manager.readResource('one', uri);
    for (let i = 0; i < 2; i++) await manager.request('one', 'resources/read', { uri, ...more });
    await manager.readResource('one', uri);
    assert.equal(server.count('resources/read'), 3);
  });

for (const code of [-32602, -32601])
  test(`a kept list that shows a tool which the server refuses with ${code} is purged, once a minute`, async (t) => {
    const { manager, server, clock } = await benchOf(t, () => toolList(['gone', 'there'], KEPT), {
      server: {
        on: {
          'tools/call': () => {
            throw new Refusal(code, 'Unknown tool');
          },
        },
      },
    });
    const callAndList = async (name: string) => {
      await assert.rejects(manager.callTool('one', name), { name: 'ServerError', code });
      await manager.listTools('one');
      return server.count('tools/list');
    };
    await manager.listTools('one');
    assert.equal(await callAndList('unlisted'), 1);
    assert.equal(await callAndList('gone'), 2);
    assert.equal(await callAndList('gone'), 2);
    clock.advance(MINUTE);
    assert.equal(await callAndList('there'), 3);
    assert.equal(server.count('tools/call'), 4);
  });

test('what the caller does to a list, however deep, changes nothing that is kept', async (t) => {
  const { manager } = await benchOf(t, () => toolList(['b', 'a'], KEPT));
  const first = await manager.listTools('one');
  const asItWas = structuredClone(first);
  const [tool] = first;
  assert.ok(tool);
  tool.inputSchema.properties = { hacked: {} };
  tool.name = 'hacked';
  first.reverse();
  assert.deepEqual(await manager.listTools('one'), asItWas);
});

test('fifty listings that come together cost one request', async (t) => {
  const held = new Held<string>();
  const { manager, server, outcomes } = await benchOf(t, held.next);
  const listings = Array.from({ length: 50 }, () => manager.listTools('one'));
  await held.answer(toolList(['a'], KEPT));
  const lists = await Promise.all(listings);
  for (const list of lists) assert.deepEqual(namesOf(list), ['a']);
  assert.equal(new Set(lists).size, 50);
  assert.equal(server.count('tools/list'), 1);
  assert.equal(server.count('initialize'), 1);
  assert.equal(outcomes().filter((outcome) => outcome === 'collapsed').length, 49);
});

test('when a shared listing fails all see the error, and the next one tries again', async (t) => {
  const held = new Held<string>();
  const { manager, server } = await benchOf(t, async () => {
    const text = await held.next();
    if (text === 'down') throw new Refusal(-32603, 'Down');
    return text;
  });
  const listings = Array.from({ length: 50 }, () => manager.listTools('one'));
  const settled = Promise.allSettled(listings);
  await held.answer('down');
  for (const outcome of await settled) {
    assert.equal(outcome.status, 'rejected');
    assert.equal(outcome.reason.message, 'Down');
  }
  const next = manager.listTools('one');
  await held.answer(toolList(['a']));
  assert.deepEqual(namesOf(await next), ['a']);
  assert.equal(server.count('tools/list'), 2);
});

test('fifty first calls of a child start it once; when it cannot start all are told and the next may try', async (t) => {
  const { manager, clock, events } = openManager(t, {
    one: listChild(),
    broken: { command: '/no/such/program' },
  });
  await Promise.all(Array.from({ length: 50 }, () => manager.serverInfo('one')));
  assert.equal(events.all.filter(({ type }) => type === 'server_connected').length, 1);
  const failed = await Promise.allSettled(Array.from({ length: 50 }, () => manager.serverInfo('broken')));
  for (const outcome of failed) assert.equal(outcome.status, 'rejected');
  const attempts = () => events.all.filter(({ type }) => type === 'server_connect_failed').length;
  assert.equal(attempts(), 1);
  clock.advance(MINUTE);
  await assert.rejects(manager.serverInfo('broken'), { code: 'server_unavailable', message: /"broken"/ });
  assert.equal(attempts(), 2);
});

test('the lists of several servers are fetched at one time', async (t) => {
  const held = new Held<string>();
  const server = await serve(t, { on: { 'tools/list': held.next } });
  const { manager } = openManager(t, { one: remote(server.url), two: remote(server.url) });
  const both = Promise.all(['one', 'two'].map((id) => manager.listTools(id)));
  await held.received(2);
  for (const name of ['x', 'y']) await held.answer(toolList([name]));
  assert.equal((await both).length, 2);
});
