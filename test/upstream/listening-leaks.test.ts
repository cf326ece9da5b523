import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Core } from '../../src/app/core.js';
import type { Message } from '../../src/wire/message.js';
import { caller, exchange, localAgent, openCore, remote } from '../support/pool-bench.js';
import { ACKNOWLEDGED, listenServer } from '../support/subscriptions.js';

const AGENT = { ...localAgent('a').profile, revision: '2026-07-28' };

/** One subscription, acknowledged; what ends it settles when nothing of it is left. */
async function opened(core: Core, notifications: object): Promise<() => Promise<void>> {
  const end = new AbortController();
  let acknowledged = () => {};
  const begun = new Promise<void>((resolve) => {
    acknowledged = resolve;
  });
  const running = core.handle({
    ...exchange({ ...localAgent('a'), profile: AGENT }, caller(), 'subscriptions/listen', { notifications }),
    era: 'modern',
    signal: end.signal,
    notify: ({ method }: Message) => {
      if (method === ACKNOWLEDGED) acknowledged();
    },
  });
  const over = running.then(
    () => {},
    () => {},
  );
  await Promise.race([begun, over]);
  return async () => {
    end.abort();
    await over;
  };
}

async function bench(t: TestContext) {
  const server = await listenServer(t);
  return { server, ...openCore(t, { one: remote(server.server.url) }) };
}

test('ten thousand subscriptions that come and go leave nothing behind', async (t) => {
  const { server, core, clock } = await bench(t);
  const stay = await opened(core, { toolsListChanged: true });
  const timers = clock.delays.length;
  for (let round = 0; round < 10_000; round++) await (await opened(core, { toolsListChanged: true }))();
  assert.equal(server.all.length, 1);
  assert.equal(clock.delays.length, timers);
  await stay();
  await server.until(() => server.open.length === 0);
});

test('subscriptions that each open and close the stream of the server leave nothing behind', async (t) => {
  const { server, core, clock } = await bench(t);
  await (await opened(core, { toolsListChanged: true }))();
  const timers = clock.delays.length;
  for (let round = 0; round < 300; round++)
    await (
      await opened(core, round % 2 ? { resourceSubscriptions: [`a:${round}`] } : { toolsListChanged: true })
    )();
  await server.until(() => server.open.length === 0);
  assert.equal(server.all.length, 301);
  assert.equal(clock.delays.length, timers);
});

test('closing the connections of a server ends what was acknowledged gently, and leaves no stream', async (t) => {
  const { server, core } = await bench(t);
  const end = new AbortController();
  const told: string[] = [];
  const running = core.handle({
    ...exchange({ ...localAgent('a'), profile: AGENT }, caller(), 'subscriptions/listen', {
      notifications: { toolsListChanged: true },
    }),
    era: 'modern',
    signal: end.signal,
    notify: ({ method }: Message) => told.push(method),
  });
  await server.nth(1);
  while (told.length === 0) await new Promise(setImmediate);
  await core.pool.close('one');
  const answer = JSON.parse((await running).bytes.toString());
  assert.equal(answer.result.resultType, 'complete');
  await server.until(() => server.open.length === 0);
});

test('a subscription that a closed connection left unacknowledged goes over a new one', async (t) => {
  const { server, core } = await bench(t);
  server.onListen = () => {};
  const opening = opened(core, { toolsListChanged: true });
  await server.nth(1);
  server.onListen = (one) => one.acknowledge();
  await core.pool.close('one');
  await (await opening)();
  assert.equal(server.all.length, 2);
});
