import assert from 'node:assert/strict';
import { test } from 'node:test';
import { modernText } from '../support/modern-text.js';
import { openGateway, type PoolBench, passUntil, remote } from '../support/pool-bench.js';
import { ListenServer, listenServer, news, postModern, subscribed } from '../support/subscriptions.js';

async function list(gateway: PoolBench): Promise<void> {
  await (await postModern(gateway.url(), modernText('tools/list', '1'))).text();
}

async function bench(t: Parameters<typeof listenServer>[0], more: object = {}) {
  const server = await listenServer(t);
  const gateway = await openGateway(t, { one: remote(server.server.url, more) });
  return { server, gateway };
}

/** Lets time pass until the server has had so many subscriptions. */
async function reopened(server: ListenServer, gateway: PoolBench, count: number): Promise<void> {
  await passUntil(gateway.clock, () => server.all.length >= count, 250);
}

for (const [how, lose] of [
  ['ends gently', (server: ListenServer) => server.last.end()],
  [
    'is taken back',
    (server: ListenServer) =>
      server.last.tell('notifications/cancelled', { requestId: server.last.message.id }),
  ],
] as const)
  test(`a stream that ${how} is opened anew, and the agents are told that they may have missed something`, async (t) => {
    const { server, gateway } = await bench(t);
    await list(gateway);
    await server.nth(1);
    const tools = await subscribed(gateway.url(), { toolsListChanged: true, resourceSubscriptions: ['a:1'] });
    const prompts = await subscribed(gateway.url(), { promptsListChanged: true });
    gateway.clock.advance(1_000);
    await server.until(() => server.open.length === 1);
    lose(server);
    await reopened(server, gateway, 3);
    assert.deepEqual(await news(tools.stream), 'tools/list_changed');
    assert.deepEqual(await news(tools.stream), 'resources/updated a:1');
    assert.deepEqual(await news(prompts.stream), 'prompts/list_changed');
    await list(gateway);
    assert.equal(server.server.count('tools/list'), 2);
    gateway.clock.advance(250);
    server.last.changed('prompts');
    assert.equal(await news(prompts.stream), 'prompts/list_changed');
  });

test('agents that listen outlive a restart of the server', async (t) => {
  const first = await ListenServer.start();
  const { port } = first.server;
  const gateway = await openGateway(t, { one: remote(first.server.url) });
  const { stream } = await subscribed(gateway.url(), { toolsListChanged: true });
  await first.close();
  const second = await listenServer(t, {}, undefined, port);
  await reopened(second, gateway, 1);
  assert.equal(await news(stream), 'tools/list_changed');
  gateway.clock.advance(250);
  second.last.changed();
  assert.equal(await news(stream), 'tools/list_changed');
});

test('a stream that breaks again and again is opened ever more rarely, until something is told on it', async (t) => {
  const { server, gateway } = await bench(t);
  const { stream } = await subscribed(gateway.url(), { toolsListChanged: true });
  for (const [count, delayMs] of [
    [2, 750],
    [3, 1_500],
    [4, 3_000],
  ] as const) {
    server.last.end();
    assert.equal(await gateway.clock.armed((armedMs) => armedMs === delayMs), delayMs);
    gateway.clock.advance(delayMs);
    await server.nth(count);
    assert.equal(await news(stream), 'tools/list_changed');
  }
  gateway.clock.advance(250);
  server.last.changed();
  assert.equal(await news(stream), 'tools/list_changed');
  server.last.end();
  assert.equal(await gateway.clock.armed((armedMs) => armedMs === 750), 750);
});

test('a stream that stood for long is opened anew soon', async (t) => {
  const { server, gateway } = await bench(t);
  const { stream } = await subscribed(gateway.url(), { toolsListChanged: true });
  for (const count of [2, 3]) {
    server.last.end();
    await gateway.clock.armed((armedMs) => armedMs === 750);
    gateway.clock.advance(750);
    await server.nth(count);
    assert.equal(await news(stream), 'tools/list_changed');
    gateway.clock.advance(10_000);
  }
});

test('attempts that fail after a stream that stood for long are held apart ever more', async (t) => {
  const { server, gateway } = await bench(t);
  const { stream } = await subscribed(gateway.url(), { toolsListChanged: true });
  gateway.clock.advance(60_000);
  const first = server.last;
  server.onListen = (one) => one.cut();
  first.cut();
  for (const delayMs of [750, 1_500, 3_000]) {
    await gateway.clock.armed((armedMs) => armedMs === delayMs);
    gateway.clock.advance(delayMs);
  }
  await gateway.clock.armed((armedMs) => armedMs === 6_000);
  server.onListen = (one) => one.acknowledge();
  gateway.clock.advance(6_000);
  assert.equal(await news(stream), 'tools/list_changed');
});

test('a server that acknowledges and ends at once is not hammered', async (t) => {
  const { server, gateway } = await bench(t);
  server.onListen = (one) => {
    one.acknowledge();
    one.end();
  };
  const { honoured } = await subscribed(gateway.url(), { toolsListChanged: true });
  assert.deepEqual(honoured, { toolsListChanged: true });
  await gateway.clock.armed((armedMs) => armedMs === 750);
  assert.equal(server.all.length, 1);
});

test('while the server is down its cached lists are in doubt, not renewed for ever', async (t) => {
  const { server, gateway } = await bench(t);
  await list(gateway);
  await server.nth(1);
  server.last.cut();
  await gateway.clock.armed((armedMs) => armedMs === 750);
  await list(gateway);
  assert.equal(server.server.count('tools/list'), 2);
});

for (const code of [-32601, -32603])
  test(`a server that answers ${code} tells of nothing: agents stay, and it is not asked again`, async (t) => {
    const { server, gateway } = await bench(t);
    server.onListen = (one) => one.refuse(code);
    const first = await subscribed(gateway.url(), { toolsListChanged: true });
    const second = await subscribed(gateway.url(), { promptsListChanged: true });
    assert.deepEqual([first.honoured, second.honoured], [{}, {}]);
    await list(gateway);
    assert.equal(server.all.length, 1);
  });

test('a server that honours nothing and ends is not asked again', async (t) => {
  const { server, gateway } = await bench(t);
  server.onListen = (one) => {
    one.acknowledge({});
    one.end();
  };
  const { honoured } = await subscribed(gateway.url(), { toolsListChanged: true });
  assert.deepEqual(honoured, {});
  await subscribed(gateway.url(), { toolsListChanged: true });
  assert.equal(server.all.length, 1);
});

test('a resource that the server refuses costs other agents nothing', async (t) => {
  const { server, gateway } = await bench(t);
  server.onListen = (one) => {
    if (one.filter.resourceSubscriptions?.includes('bad:')) one.refuse(-32602);
    else one.acknowledge();
  };
  const good = await subscribed(gateway.url(), { toolsListChanged: true });
  const bad = await subscribed(gateway.url(), { promptsListChanged: true, resourceSubscriptions: ['bad:'] });
  assert.deepEqual(bad.honoured, { promptsListChanged: true });
  const more = await subscribed(gateway.url(), { resourceSubscriptions: ['a:1', 'bad:'] });
  assert.deepEqual(more.honoured, { resourceSubscriptions: ['a:1'] });
  server.last.changed('tools');
  server.last.updated('a:1');
  assert.equal(await news(good.stream), 'tools/list_changed');
  assert.equal(await news(more.stream), 'resources/updated a:1');
});

test('a server that never acknowledges costs the agent its time limit, not more', async (t) => {
  const { server, gateway } = await bench(t, { requestTimeoutMs: 60_000 });
  server.onListen = () => {};
  const stream = await postModern(
    gateway.url(),
    modernText('subscriptions/listen', '1', { notifications: { toolsListChanged: true } }),
  );
  await server.nth(1);
  gateway.clock.advance(60_000);
  const answer = (await stream.rest()).at(-1);
  assert.equal(answer?.error?.code, -32603);
  assert.match(answer?.error?.message ?? '', /"one" did not answer subscriptions\/listen within 60000 ms/);
  await server.until(() => server.open.length === 0);
});

test('a wider stream that fails to open leaves the agents what they have', async (t) => {
  const { server, gateway } = await bench(t);
  const { stream } = await subscribed(gateway.url(), { toolsListChanged: true });
  server.onListen = (one) => one.cut();
  const late = await postModern(
    gateway.url(),
    modernText('subscriptions/listen', '2', { notifications: { promptsListChanged: true } }),
  );
  assert.ok((await late.rest()).at(-1)?.error);
  server.all[0]?.changed();
  assert.equal(await news(stream), 'tools/list_changed');
});

test('a loss while a wider stream is being opened is made good by that one', async (t) => {
  const { server, gateway } = await bench(t);
  const { stream } = await subscribed(gateway.url(), { toolsListChanged: true });
  server.onListen = () => {};
  const late = subscribed(gateway.url(), { promptsListChanged: true });
  const wider = await server.nth(2);
  server.all[0]?.cut();
  await gateway.clock.armed((armedMs) => armedMs === 750);
  wider.acknowledge();
  await late;
  assert.equal(await news(stream), 'tools/list_changed');
  gateway.clock.advance(1_000);
  wider.changed();
  assert.equal(await news(stream), 'tools/list_changed');
  assert.equal(server.all.length, 2);
});
