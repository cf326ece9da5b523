import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type ChannelCall, ChannelServer } from '../support/channel-server.js';
import { DISCOVERED } from '../support/modern-text.js';
import { openGateway, type PoolBench } from '../support/pool-bench.js';
import { ACKNOWLEDGED, news, SUBSCRIPTION_ID, subscribe, subscribed } from '../support/subscriptions.js';

const LISTS = { toolsListChanged: true, promptsListChanged: true };

/** A child of 2026-07-28, and the subscriptions that it was asked for. */
interface Bench {
  readonly server: ChannelServer;
  readonly gateway: PoolBench;
  readonly listens: ChannelCall[];
  /** Sends a notification of the subscription with that id; the newest by default. */
  tell(method: string, params?: object, id?: unknown): void;
}

async function bench(t: TestContext, acknowledges = true): Promise<Bench> {
  const listens: ChannelCall[] = [];
  const server = await ChannelServer.start('stdio', {
    'server/discover': () => DISCOVERED,
    'subscriptions/listen': (call) => {
      listens.push(call);
      if (acknowledges) tell(ACKNOWLEDGED, { notifications: call.message.params.notifications });
      return undefined;
    },
  });
  const tell: Bench['tell'] = (method, params = {}, id = listens.at(-1)?.message.id) =>
    server.notify(method, { _meta: { [SUBSCRIPTION_ID]: id }, ...params });
  const gateway = await openGateway(t, { one: { ...server.entry, requestTimeoutMs: 1_000_000 } });
  t.after(() => server.close());
  return { server, gateway, listens, tell };
}

const REOPEN_MS = 750;

/** Lets a timer of that delay run out as soon as there is one. */
async function soon({ clock }: PoolBench, delayMs: number): Promise<void> {
  await clock.armed((armedMs) => armedMs === delayMs);
  clock.advance(delayMs);
}

const CHANGED = 'notifications/tools/list_changed';

test('on one channel a subscription is known by its id', async (t) => {
  const { gateway, tell, listens } = await bench(t);
  const { stream } = await subscribed(gateway.url(), LISTS, '"x"');
  tell(CHANGED, {}, 77);
  tell(CHANGED, {}, String(listens[0]?.message.id));
  tell('notifications/prompts/list_changed', { n: 1 });
  assert.equal(await news(stream), 'prompts/list_changed');
  tell(CHANGED);
  const told = await stream.message();
  assert.deepEqual(told?.params._meta, { [SUBSCRIPTION_ID]: 'x' });
});

test('a change that names no subscription purges, and is told to nobody', async (t) => {
  const { gateway, tell, server } = await bench(t);
  const { stream } = await subscribed(gateway.url(), LISTS);
  server.notify(CHANGED);
  tell('notifications/prompts/list_changed');
  assert.equal(await news(stream), 'prompts/list_changed');
});

test('the stream before is cancelled by its id as soon as the new one is acknowledged', async (t) => {
  const { gateway, server, listens } = await bench(t);
  const { stream } = await subscribed(gateway.url(), { toolsListChanged: true });
  const second = await subscribed(gateway.url(), { promptsListChanged: true });
  await server.until(() => server.count('notifications/cancelled') === 1);
  const [first, last] = listens.map(({ message }) => message.id);
  assert.equal(server.of('notifications/cancelled')[0]?.params.requestId, first);
  stream.drop();
  second.stream.drop();
  await server.until(() => server.count('notifications/cancelled') === 2);
  assert.equal(server.of('notifications/cancelled')[1]?.params.requestId, last);
});

test('news of the old stream that come before the acknowledgement of the new one are told once', async (t) => {
  const { gateway, server, listens, tell } = await bench(t, false);
  const first = subscribe(gateway.url(), { resourceSubscriptions: ['a:1'] });
  await server.until(() => listens.length === 1);
  tell(ACKNOWLEDGED, { notifications: { resourceSubscriptions: ['a:1'] } });
  const stream = await first;
  assert.equal(await news(stream), 'subscriptions/acknowledged');
  const second = subscribed(gateway.url(), { promptsListChanged: true });
  await server.until(() => listens.length === 2);
  const [old, current] = listens.map(({ message }) => message.id);
  const updated = { uri: 'a:1' };
  tell('notifications/resources/updated', { ...updated, n: 1 }, old);
  tell(ACKNOWLEDGED, { notifications: { promptsListChanged: true, resourceSubscriptions: ['a:1'] } });
  tell('notifications/resources/updated', { ...updated, n: 2 }, old);
  tell('notifications/resources/updated', { ...updated, n: 3 }, current);
  assert.equal((await stream.message())?.params.n, 1);
  assert.equal((await stream.message())?.params.n, 3);
  await second;
});

test('a child that takes the subscription back, or answers it, is asked anew', async (t) => {
  const { gateway, server, listens } = await bench(t);
  const { stream } = await subscribed(gateway.url(), { toolsListChanged: true });
  const id = listens[0]?.message.id;
  server.notify('notifications/cancelled', { requestId: id, reason: 'over' });
  await soon(gateway, REOPEN_MS);
  assert.equal(await news(stream), 'tools/list_changed');
  gateway.clock.advance(10_000);
  listens[1]?.answer('{"resultType":"complete"}');
  await soon(gateway, REOPEN_MS);
  assert.equal(await news(stream), 'tools/list_changed');
});

test('a child that crashes is started again for the agents that listen', async (t) => {
  const { gateway, server, tell } = await bench(t);
  const { stream } = await subscribed(gateway.url(), { toolsListChanged: true });
  server.drop();
  await soon(gateway, REOPEN_MS);
  assert.equal(await news(stream), 'tools/list_changed');
  gateway.clock.advance(250);
  tell(CHANGED);
  assert.equal(await news(stream), 'tools/list_changed');
});

test('a cancellation that names nothing of ours is dropped', async (t) => {
  const { gateway, server, tell } = await bench(t);
  const { stream } = await subscribed(gateway.url(), { toolsListChanged: true });
  for (const requestId of [99, '1', null]) server.notify('notifications/cancelled', { requestId });
  server.notify('notifications/cancelled');
  await gateway.happened('message_dropped', 4);
  tell(CHANGED);
  assert.equal(await news(stream), 'tools/list_changed');
});
