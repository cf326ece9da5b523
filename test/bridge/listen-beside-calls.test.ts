import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PATIENCE } from '../support/forwarding.js';
import { type ModernOnLegacy, modernOnLegacy, told } from '../support/modern-on-legacy.js';
import { ACKNOWLEDGED, news } from '../support/subscriptions.js';

async function listening(bench: ModernOnLegacy, filter: object) {
  const stream = await bench.post('subscriptions/listen', { notifications: filter }, { id: '"listen"' });
  assert.equal((await stream.message())?.method, ACKNOWLEDGED);
  await bench.server.until(() => bench.server.openStreams > 0);
  return stream;
}

for (const isolate of ['auto', 'session', 'principal', 'token'])
  test(
    `a subscription and the calls of its agent are in one session (isolate: ${isolate})`,
    PATIENCE,
    async (t) => {
      const sessions = new Set<string | undefined>();
      const bench = await modernOnLegacy(t, {
        entry: { isolate },
        call: async ({ session, ask }) => {
          sessions.add(session);
          return told((await ask('roots/list')).result);
        },
        on: {
          'resources/subscribe': ({ session }) => {
            sessions.add(session);
            return '{}';
          },
        },
      });
      // A server that asks its agents gives each a connection of its own from then on.
      assert.equal((await bench.call()).result.resultType, 'input_required');
      sessions.clear();
      const stream = await listening(bench, { resourceSubscriptions: ['a:1'] });
      assert.equal((await bench.call({ id: '2' })).result.resultType, 'input_required');
      assert.equal(sessions.size, 1);
      bench.server.broadcast('notifications/resources/updated', { uri: 'a:1' });
      assert.equal(await news(stream), 'resources/updated a:1');
      stream.drop();
    },
  );

test('a question that comes while its agent only listens waits for the next call', PATIENCE, async (t) => {
  let done = () => {};
  const call = () =>
    new Promise<string>((resolve) => {
      done = () => resolve(told('done'));
    });
  const bench = await modernOnLegacy(t, { call });
  const stream = await listening(bench, { toolsListChanged: true });
  const heard = bench.server.askOnStream('roots/list');
  const asked = await bench.call();
  assert.equal(asked.result.resultType, 'input_required');
  const retried = bench.retry(asked, [{ roots: [] }]);
  assert.deepEqual((await heard).result, { roots: [] });
  done();
  assert.ok((await retried).result);
  stream.drop();
});

test(
  'a question that comes while its agent only listens is refused when no call comes',
  PATIENCE,
  async (t) => {
    const bench = await modernOnLegacy(t, {});
    const stream = await listening(bench, { toolsListChanged: true });
    const heard = bench.server.askOnStream('roots/list');
    await bench.clock.armed((delayMs) => delayMs === 5_000);
    bench.clock.advance(5_000);
    assert.ok((await heard).error);
    stream.drop();
  },
);

test('an agent that offers nothing is not asked on a subscription', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t, {});
  const listen = { notifications: { toolsListChanged: true } };
  const stream = await bench.post('subscriptions/listen', listen, { declaration: {} });
  assert.equal((await stream.message())?.method, ACKNOWLEDGED);
  await bench.server.until(() => bench.server.openStreams > 0);
  assert.equal((await bench.server.askOnStream('roots/list')).error?.code, -32601);
  stream.drop();
});
