import assert from 'node:assert/strict';
import { test } from 'node:test';
import { namesOf, openManager, remote, serve, toolList } from '../support/manager-bench.js';
import { Refusal } from '../support/mcp-server.js';
import { DISCOVERED } from '../support/modern-text.js';
import { ListenServer } from '../support/subscriptions.js';

const MINUTE = 60_000;

test('a remote server of the modern era is asked in it, and its hints count', async (t) => {
  const metas: object[] = [];
  const server = await serve(t, {
    on: {
      'server/discover': () => DISCOVERED,
      'tools/list': ({ message }) => {
        metas.push(message.params._meta);
        return toolList(['a'], { resultType: 'complete', ttlMs: 5 * MINUTE, cacheScope: 'private' });
      },
    },
  });
  const { manager, clock } = openManager(t, { one: remote(server.url) });
  await manager.listTools('one');
  clock.advance(5 * MINUTE - 1);
  assert.deepEqual(namesOf(await manager.listTools('one')), ['a']);
  assert.deepEqual([server.count('tools/list'), server.count('initialize')], [1, 0]);
  assert.deepEqual(Object.keys(metas[0] ?? {}).sort(), [
    'io.modelcontextprotocol/clientCapabilities',
    'io.modelcontextprotocol/clientInfo',
    'io.modelcontextprotocol/protocolVersion',
  ]);
});

test('a legacy server is asked once for what it does not know, and answers as ever', async (t) => {
  const server = await serve(t, {
    on: { 'tools/list': () => toolList(['a']), 'tools/call': () => '{"content":[],"own":1.0}' },
  });
  const { manager } = openManager(t, { one: remote(server.url) });
  await manager.listTools('one');
  assert.deepEqual(await manager.callTool('one', 'a'), { content: [], own: 1 });
  await manager.listTools('one', { fresh: true });
  assert.equal(server.count('server/discover'), 1);
});

test('a server without the older era tells who it is, and is subscribed to, all the same', async (t) => {
  const server = await serve(t, {
    on: { 'server/discover': () => DISCOVERED },
    greet: () => {
      throw new Refusal(-32601, 'no such method');
    },
  });
  const { manager } = openManager(t, { one: remote(server.url) });
  const { capabilities, protocolVersion } = await manager.serverInfo('one');
  assert.deepEqual([protocolVersion, capabilities.tools], ['2025-11-25', { listChanged: true }]);
  assert.deepEqual(await manager.request('one', 'ping'), {});
});

test('a list that is kept is dropped when a modern server says that it changed, though nobody listens', async (t) => {
  const listening = await ListenServer.start();
  const { server } = listening;
  t.after(() => server.close());
  server.on['tools/list'] = () => toolList(['a'], { ttlMs: 10 * MINUTE, cacheScope: 'private' });
  const { manager } = openManager(t, { one: remote(server.url) });
  const changed = new Promise((resolve) => manager.once('list_changed', resolve));
  await manager.listTools('one');
  (await listening.nth(1)).changed();
  assert.deepEqual(await changed, { serverId: 'one', list: 'tools' });
  await manager.listTools('one');
  assert.equal(server.count('tools/list'), 2);
});
