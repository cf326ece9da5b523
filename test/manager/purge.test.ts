import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  answering,
  EVENT_STREAM,
  HttpUpstream,
  JSON_BODY,
  type Responder,
} from '../support/http-upstream.js';
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

const CHANGED = 'notifications/tools/list_changed';

test('a change that the server tells of ends a list that is still fresh', async (t) => {
  let version = 1;
  const { manager, server, events } = await benchOf(t, () => toolList([`v${version}`], { ttlMs: 600_000 }));
  await manager.listTools('one');
  await server.until(() => server.openStreams === 1);
  version = 2;
  server.broadcast(CHANGED);
  await events.first(({ type }) => type === 'cache_purged');
  assert.deepEqual(namesOf(await manager.listTools('one')), ['v2']);
  assert.deepEqual(namesOf(await manager.listTools('one')), ['v2']);
  assert.equal(server.count('tools/list'), 2);
});

test('a change told within the answer to a call ends the lists of every token, before the call returns', async (t) => {
  let tools = ['echo'];
  const { manager, server } = await benchOf(t, () => toolList(tools, { ttlMs: 600_000 }), {
    server: {
      on: {
        'tools/call': (call) => {
          tools = ['added', 'echo'];
          call.notify(CHANGED);
          return '{"content":[]}';
        },
      },
    },
  });
  const tokens = [undefined, 'A', 'B'];
  for (const token of tokens) await manager.listTools('one', { token });
  await manager.callTool('one', 'echo', {}, { token: 'A' });
  for (const token of tokens)
    assert.deepEqual(namesOf(await manager.listTools('one', { token })), ['added', 'echo']);
  assert.equal(server.count('tools/list'), 6);
});

test('a change is told to the user once what was kept is gone', async (t) => {
  let version = 1;
  const { manager, server } = await benchOf(t, () => toolList([`v${version}`], { ttlMs: 600_000 }));
  await manager.listTools('one');
  await server.until(() => server.openStreams === 1);
  version = 2;
  const listedAtOnce = new Promise<string[]>((resolve) => {
    manager.once('list_changed', async ({ serverId, list }) => {
      assert.deepEqual([serverId, list], ['one', 'tools']);
      resolve(namesOf(await manager.listTools('one')));
    });
  });
  server.broadcast(CHANGED);
  assert.deepEqual(await listedAtOnce, ['v2']);
});

test('a change that overtakes an answer keeps that answer out, and its waiter gets it', async (t) => {
  const held = new Held<string>();
  const { manager, server, news } = await benchOf(t, () =>
    server.count('tools/list') === 1 ? held.next() : toolList(['new'], { ttlMs: 600_000 }),
  );
  const first = manager.listTools('one');
  await held.received();
  await server.until(() => server.openStreams === 1);
  server.broadcast(CHANGED);
  await news.first(() => true);
  await held.answer(toolList(['old'], { ttlMs: 600_000 }));
  assert.deepEqual(namesOf(await first), ['old']);
  for (let i = 0; i < 2; i++) assert.deepEqual(namesOf(await manager.listTools('one')), ['new']);
  assert.equal(server.count('tools/list'), 2);
});

test('a listing that comes after a change does not share a fetch from before it', async (t) => {
  const held = new Held<string>();
  const { manager, server, news } = await benchOf(t, held.next);
  const first = manager.listTools('one');
  await held.received();
  await server.until(() => server.openStreams === 1);
  server.broadcast(CHANGED);
  await news.first(() => true);
  const second = manager.listTools('one');
  await held.received(2);
  await held.answer(toolList(['old'], { ttlMs: 600_000 }));
  await held.answer(toolList(['new'], { ttlMs: 600_000 }));
  assert.deepEqual([...namesOf(await first), ...namesOf(await second)], ['old', 'new']);
  assert.deepEqual(namesOf(await manager.listTools('one')), ['new']);
});

for (const where of ['before', 'behind'])
  test(`a change of a child in the same chunk as its answer, ${where} it, keeps the answer out`, async (t) => {
    const { manager, news } = openManager(t, { one: listChild(`--changed=${where}`, '--ttl=600000') });
    assert.deepEqual(namesOf(await manager.listTools('one')), ['listing-1']);
    await news.first(() => true);
    for (let i = 0; i < 2; i++)
      assert.deepEqual(namesOf(await manager.listTools('one')), ['listing-2'], `listing ${i}`);
  });

test('a change in the same chunk of an event stream as the answer keeps the answer out', async (t) => {
  const upstream = await HttpUpstream.start();
  t.after(() => upstream.stop());
  let listings = 0;
  const list: Responder = (request, response) => {
    const id = request.json.id;
    const answer = `{"jsonrpc":"2.0","id":${id},"result":${toolList([`v${++listings}`], { ttlMs: 600_000 })}}`;
    if (listings > 1) return response.play({ headers: JSON_BODY, chunks: [answer] });
    const changed = `data: {"jsonrpc":"2.0","method":"${CHANGED}"}\n\n`;
    response.play({ headers: EVENT_STREAM, chunks: [`${changed}data: ${answer}\n\n`] });
  };
  upstream.serveSessions('/mcp', list);
  const { manager } = openManager(t, { one: remote(upstream.url()) });
  const listed = [];
  for (let i = 0; i < 3; i++) listed.push(...namesOf(await manager.listTools('one')));
  assert.deepEqual(listed, ['v1', 'v2', 'v2']);
});

test('a change sent right behind the answer to `initialize` is not lost', async (t) => {
  const { manager, news } = openManager(t, { one: listChild('--greet=changed') });
  await manager.serverInfo('one');
  assert.deepEqual(await news.first(() => true), { serverId: 'one', list: 'tools' });
});

test('a change sent before the answer to `initialize` is not lost', async (t) => {
  const upstream = await HttpUpstream.start();
  t.after(() => upstream.stop());
  upstream.on('GET', '/mcp', { status: 405 });
  upstream.on('POST', '/mcp', (request, response) => {
    if (request.json.method !== 'initialize') return response.play({ status: 202 });
    const result = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      serverInfo: { name: 'n', version: '1' },
    };
    const answer = JSON.stringify({ jsonrpc: '2.0', id: request.json.id, result });
    const changed = `data: {"jsonrpc":"2.0","method":"${CHANGED}"}\n\n`;
    response.play({ headers: EVENT_STREAM, chunks: [`${changed}data: ${answer}\n\n`] });
  });
  const { manager, news } = openManager(t, { one: remote(upstream.url()) });
  await manager.serverInfo('one');
  assert.deepEqual(news.all, [{ serverId: 'one', list: 'tools' }]);
});

test('a change of one server does not cost a fetch of another its entry', async (t) => {
  const held = new Held<string>();
  const slow = await serve(t, { on: { 'tools/list': held.next } });
  const { manager, news } = openManager(t, {
    slow: remote(slow.url),
    noisy: listChild('--changed=behind'),
  });
  const listing = manager.listTools('slow');
  await held.received();
  await manager.listTools('noisy');
  await news.first(({ serverId }) => serverId === 'noisy');
  await held.answer(toolList(['a'], { ttlMs: 600_000 }));
  await listing;
  await manager.listTools('slow');
  assert.equal(slow.count('tools/list'), 1);
});

test('a burst of changes costs one listing, and only when somebody lists', async (t) => {
  const { manager, server, news } = await benchOf(t, () => toolList(['a'], { ttlMs: 600_000 }), {
    server: {
      on: {
        'tools/call': (call) => {
          for (let i = 0; i < 200; i++) call.notify(CHANGED);
          return '{"content":[]}';
        },
      },
    },
  });
  await manager.listTools('one');
  await manager.callTool('one', 'a');
  assert.equal(news.all.length, 200);
  assert.equal(server.count('tools/list'), 1);
  for (let i = 0; i < 5; i++) await manager.listTools('one');
  assert.equal(server.count('tools/list'), 2);
});

test('a server that tells of a change after every list is asked when somebody lists, and not else', async (t) => {
  const { manager, server, news } = await benchOf(t, (call) => {
    call.notify(CHANGED);
    return toolList(['a'], { ttlMs: 600_000 });
  });
  for (let i = 0; i < 3; i++) await manager.listTools('one');
  assert.equal(server.count('tools/list'), 3);
  assert.equal(news.all.length, 3);
});

test('an updated resource is read anew, and the user is told', async (t) => {
  let version = 1;
  const server = await serve(t, {
    on: { 'resources/read': () => JSON.stringify({ contents: [`v${version}`], ttlMs: 600_000 }) },
  });
  const { manager } = openManager(t, { one: remote(server.url) });
  const read = async (uri: string) => (await manager.readResource('one', uri)).contents;
  for (const uri of ['file:///a', 'file:///b']) assert.deepEqual(await read(uri), ['v1']);
  await server.until(() => server.openStreams === 1);
  version = 2;
  const told = new Promise((resolve) => manager.once('resource_updated', resolve));
  server.broadcast('notifications/resources/updated', { uri: 'file:///a' });
  assert.deepEqual(await told, { serverId: 'one', uri: 'file:///a' });
  assert.deepEqual([await read('file:///a'), await read('file:///b')], [['v2'], ['v1']]);
});

test('a server that comes back with other tools is called at once, and what it had before is forgotten', async (t) => {
  const first = await serve(t, { on: { 'tools/list': () => toolList(['a', 'b'], { ttlMs: 600_000 }) } });
  const { manager, clock, news } = openManager(t, { one: remote(first.url) });
  await manager.listTools('one');
  await first.until(() => first.openStreams === 1);
  const { port } = first;
  await first.close();
  // The loss has been noticed once the stream is to be reopened.
  await clock.armed((delayMs) => delayMs <= 1_000);
  const on = {
    'tools/list': () => toolList(['c', 'd', 'e', 'f'], { ttlMs: 600_000 }),
    'tools/call': () => '{"content":[]}',
  };
  const second = await serve(t, { on }, port);
  assert.deepEqual(await manager.callTool('one', 'a'), { content: [] });
  for (let i = 0; i < 2; i++) assert.deepEqual(namesOf(await manager.listTools('one')), ['c', 'd', 'e', 'f']);
  assert.equal(second.count('tools/list'), 1);
  assert.deepEqual(
    news.all.map(({ list }) => list),
    ['tools', 'prompts', 'resources'],
  );
});

test('what was listed before the notification stream broke is asked for again: news may have been missed', async (t) => {
  const upstream = await HttpUpstream.start();
  t.after(() => upstream.stop());
  upstream.serveSessions('/mcp', answering({ tools: [], ttlMs: 600_000 }));
  const { manager, clock } = openManager(t, { one: remote(upstream.url()) });
  await manager.listTools('one');
  await upstream.received('GET');
  upstream.responses.find(({ raw }) => raw.req.method === 'GET')?.fin();
  await clock.armed((delayMs) => delayMs <= 1_000);
  for (let i = 0; i < 2; i++) await manager.listTools('one');
  assert.equal(upstream.count('tools/list'), 2);
});

test('a session that the server forgot is begun anew without a failed call, and its lists are asked for', async (t) => {
  let version = 1;
  const { manager, server } = await benchOf(t, () => toolList([`v${version}`], { ttlMs: 600_000 }), {
    server: { on: { 'tools/call': () => '{"content":[]}' } },
  });
  await manager.listTools('one');
  server.forgetSessions();
  version = 2;
  await manager.callTool('one', 'v1');
  assert.deepEqual(namesOf(await manager.listTools('one')), ['v2']);
  assert.equal(server.count('initialize'), 2);
});
