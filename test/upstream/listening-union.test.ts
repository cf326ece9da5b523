import assert from 'node:assert/strict';
import { test } from 'node:test';
import { modernText } from '../support/modern-text.js';
import { openGateway, type PoolBench, passUntil, remote } from '../support/pool-bench.js';
import { type ListenServer, listenServer, news, postModern, subscribed } from '../support/subscriptions.js';

const OVERLAP_MS = 1_000;
const TRIM_MS = 5_000;

async function list(gateway: PoolBench): Promise<void> {
  await (await postModern(gateway.url(), modernText('tools/list', '1'))).text();
}

async function bench(t: Parameters<typeof listenServer>[0], settings: object = {}) {
  const server = await listenServer(t);
  const gateway = await openGateway(t, { one: remote(server.server.url) }, { settings });
  return { server, gateway };
}

/** The streams that stand once those that were replaced are gone. */
async function settled(server: ListenServer, gateway: PoolBench, count = 1): Promise<void> {
  gateway.clock.advance(OVERLAP_MS);
  await server.until(() => server.open.length === count);
}

test('all agents of a pool key share one stream with everything that any of them wants', async (t) => {
  const { server, gateway } = await bench(t);
  await subscribed(gateway.url(), { toolsListChanged: true });
  await subscribed(gateway.url(), { resourceSubscriptions: ['a:1'] });
  await subscribed(gateway.url(), { toolsListChanged: true, resourceSubscriptions: ['a:2'] });
  await settled(server, gateway);
  assert.deepEqual(server.last.filter, { toolsListChanged: true, resourceSubscriptions: ['a:1', 'a:2'] });
});

test('an agent that wants no more than others do is acknowledged without a word to the server', async (t) => {
  const { server, gateway } = await bench(t);
  await subscribed(gateway.url(), { toolsListChanged: true, promptsListChanged: true });
  const { honoured } = await subscribed(gateway.url(), { promptsListChanged: true });
  assert.deepEqual(honoured, { promptsListChanged: true });
  assert.equal(server.all.length, 1);
});

test('the stream before is closed only when the new one is acknowledged', async (t) => {
  const { server, gateway } = await bench(t);
  const tools = await subscribed(gateway.url(), { toolsListChanged: true });
  server.onListen = () => {};
  const prompts = subscribed(gateway.url(), { promptsListChanged: true });
  const second = await server.nth(2);
  gateway.clock.advance(OVERLAP_MS);
  server.all[0]?.changed('tools');
  assert.equal(await news(tools.stream), 'tools/list_changed');
  assert.equal(server.open.length, 2);
  second.acknowledge();
  await prompts;
  await settled(server, gateway);
  assert.equal(server.open[0], second);
});

test('what the old stream still brings behind the acknowledgement of the new one is told, and no update twice', async (t) => {
  const { server, gateway } = await bench(t);
  const { stream } = await subscribed(gateway.url(), {
    toolsListChanged: true,
    resourceSubscriptions: ['a:1'],
  });
  await subscribed(gateway.url(), { promptsListChanged: true });
  const [old, current] = server.open;
  assert.ok(old && current);
  old.updated('a:1');
  assert.equal(await news(stream), 'resources/updated a:1');
  current.updated('a:1');
  old.updated('a:1');
  current.updated('a:1');
  current.changed('tools');
  // One of the old stream only, one of both in either order.
  assert.equal(await news(stream), 'resources/updated a:1');
  assert.equal(await news(stream), 'tools/list_changed');
  await settled(server, gateway);
  current.updated('a:1');
  assert.equal(await news(stream), 'resources/updated a:1');
});

test('many agents that come at once wait for few streams', async (t) => {
  const { server, gateway } = await bench(t);
  const uris = Array.from({ length: 20 }, (_, n) => `a:${n}`);
  const all = await Promise.all(
    uris.map((uri) => subscribed(gateway.url(), { resourceSubscriptions: [uri] })),
  );
  assert.deepEqual(
    all.map(({ honoured }) => honoured),
    uris.map((uri) => ({ resourceSubscriptions: [uri] })),
  );
  await settled(server, gateway);
  assert.equal(server.last.filter.resourceSubscriptions.length, 20);
  assert.ok(server.all.length <= 10, `${server.all.length} streams`);
});

test('resources that nobody wants any more are asked for no longer, a little later', async (t) => {
  const { server, gateway } = await bench(t);
  const { stream } = await subscribed(gateway.url(), { resourceSubscriptions: ['a:1'] });
  const other = await subscribed(gateway.url(), { toolsListChanged: true });
  await settled(server, gateway);
  stream.drop();
  await gateway.clock.armed((delayMs) => delayMs === TRIM_MS);
  gateway.clock.advance(TRIM_MS);
  assert.deepEqual((await server.nth(3)).filter, { toolsListChanged: true });
  await passUntil(gateway.clock, () => server.open.length === 1, 250);
  server.last.changed();
  assert.equal(await news(other.stream), 'tools/list_changed');
});

test('when the last agent goes, the stream is closed', async (t) => {
  const { server, gateway } = await bench(t);
  const first = await subscribed(gateway.url(), { toolsListChanged: true });
  const second = await subscribed(gateway.url(), { toolsListChanged: true });
  first.stream.drop();
  second.stream.drop();
  await server.until(() => server.open.length === 0);
  assert.equal(server.all.length, 1);
});

test('an agent that goes before the acknowledgement leaves no stream behind', async (t) => {
  const { server, gateway } = await bench(t);
  server.onListen = () => {};
  const { stream } = {
    stream: await postModern(
      gateway.url(),
      modernText('subscriptions/listen', '1', { notifications: { toolsListChanged: true } }),
    ),
  };
  await server.nth(1);
  stream.drop();
  await server.until(() => server.open.length === 0);
  server.onListen = (one) => one.acknowledge();
  const { honoured } = await subscribed(gateway.url(), { promptsListChanged: true });
  assert.deepEqual(honoured, { promptsListChanged: true });
});

test('a list that was asked for is listened for, so that its change purges it though no agent listens', async (t) => {
  const { server, gateway } = await bench(t);
  await list(gateway);
  await list(gateway);
  assert.equal(server.server.count('tools/list'), 1);
  const { filter } = await server.nth(1);
  assert.deepEqual(filter, { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true });
  server.last.changed();
  await gateway.happened('cache_purged');
  await list(gateway);
  assert.equal(server.server.count('tools/list'), 2);
  assert.equal(server.all.length, 1);
});

test('a server whose lists never change is not listened to for their sake', async (t) => {
  const discovered =
    '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}';
  const server = await listenServer(t, {}, discovered);
  const gateway = await openGateway(t, { one: remote(server.server.url) });
  await list(gateway);
  const { honoured } = await subscribed(gateway.url(), { toolsListChanged: true });
  assert.deepEqual(honoured, {});
  assert.equal(server.all.length, 0);
});

test('agents that go leave the stream to the cache, until nobody uses the server any more', async (t) => {
  const { server, gateway } = await bench(t, { connectionIdleMs: 60_000 });
  await list(gateway);
  await server.nth(1);
  const { stream } = await subscribed(gateway.url(), { toolsListChanged: true });
  stream.drop();
  await gateway.happened('session_closed');
  server.last.changed('tools');
  await gateway.happened('cache_purged');
  assert.equal(server.open.length, 1);
  await passUntil(gateway.clock, () => server.open.length === 0, 15_000);
  await gateway.happened('server_disconnected');
  assert.equal(server.all.length, 1);
});

test('a connection on which agents listen is not idle', async (t) => {
  const { server, gateway } = await bench(t, { connectionIdleMs: 60_000 });
  const { stream } = await subscribed(gateway.url(), { toolsListChanged: true });
  gateway.clock.advance(600_000);
  server.last.changed();
  assert.equal(await news(stream), 'tools/list_changed');
  assert.equal(server.all.length, 1);
});
