import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { GatewayError } from '../../src/base/errors.js';
import type { AskOptions } from '../../src/pipeline/exchange.js';
import { notification, request, result } from '../../src/protocol/compose.js';
import type { Message } from '../../src/wire/message.js';
import { Gateway, HeldServer, namesOf, settled, tools } from './gateway.js';

const DOWN = new GatewayError('server_unavailable', 'Server "alpha" is down', { serverId: 'alpha' });

function held(settings: ConstructorParameters<typeof Gateway>[1] = {}) {
  const server = new HeldServer();
  return { server, gateway: new Gateway(server.handler, settings) };
}

test('fifty listings that come together cost one request', async () => {
  const { server, gateway } = held();
  const listings = Array.from({ length: 50 }, (_, i) => gateway.send({ id: `${i}` }));
  server.release(tools(['a']));
  const answers = await Promise.all(listings);
  assert.equal(gateway.wire.length, 1);
  assert.deepEqual(
    answers.map(({ bytes }) => bytes.toString()),
    listings.map((_, i) => `{"jsonrpc":"2.0","id":${i},"result":${tools(['a'])}}`),
  );
  assert.deepEqual(gateway.outcomes(), ['miss', ...Array(49).fill('collapsed')]);
});

test('a failed fetch reaches all who wait, and the next listing tries again', async () => {
  const { server, gateway } = held();
  const listings = Promise.allSettled(Array.from({ length: 50 }, () => gateway.list()));
  server.release(DOWN);
  for (const outcome of await listings) assert.equal(outcome.status === 'rejected' && outcome.reason, DOWN);
  const next = gateway.list();
  server.release(tools(['a']));
  assert.deepEqual(namesOf(await next), ['a']);
  assert.equal(gateway.wire.length, 2);
});

test('a next layer that throws at once is a failure like any other', async () => {
  const gateway = new Gateway(() => {
    throw DOWN;
  });
  await assert.rejects(gateway.list(), DOWN);
  await assert.rejects(gateway.list(), DOWN);
});

test('a list that must not be kept is still shared by those who wait, and asked for again at once', async () => {
  const { server, gateway } = held({ defaultTtlMs: () => 0 });
  const again = Promise.all([gateway.list(), gateway.list()]).then(() => gateway.list());
  server.release(tools(['a']));
  await settled();
  server.release(tools(['b']));
  assert.deepEqual(namesOf(await again), ['b']);
  assert.equal(gateway.wire.length, 2);
});

test('whoever cancels leaves alone; the fetch goes on for the others', async () => {
  const { server, gateway } = held();
  const first = new AbortController();
  const third = new AbortController();
  const listings = [
    gateway.list({ signal: first.signal }),
    gateway.list(),
    gateway.list({ signal: third.signal }),
  ] as const;
  await settled();
  first.abort();
  third.abort();
  await assert.rejects(listings[0], { code: 'cancelled' });
  await assert.rejects(listings[2], { code: 'cancelled' });
  assert.equal(gateway.wire[0]?.signal.aborted, false);
  server.release(tools(['a']));
  assert.deepEqual(namesOf(await listings[1]), ['a']);
  await gateway.list();
  assert.equal(gateway.wire.length, 1);
});

test('the fetch is cancelled when the last who waited has left, with that one’s reason', async () => {
  const { server, gateway } = held();
  const agents = [new AbortController(), new AbortController()];
  const listings = Promise.allSettled(agents.map(({ signal }) => gateway.list({ signal })));
  await settled();
  const reason = notification('notifications/cancelled', { requestId: 7, reason: 'bored' });
  agents[0]?.abort();
  agents[1]?.abort(reason);
  await listings;
  assert.equal(gateway.wire[0]?.signal.aborted, true);
  assert.equal(gateway.wire[0]?.signal.reason, reason);
  const next = gateway.list();
  await settled();
  assert.equal(gateway.wire.length, 2);
  server.release(DOWN);
  server.release(tools(['a']));
  assert.deepEqual(namesOf(await next), ['a']);
});

test('a listing that is cancelled before it begins reaches nobody', async () => {
  const { gateway } = held();
  const signal = AbortSignal.abort();
  await assert.rejects(gateway.list({ signal }), { code: 'cancelled' });
  assert.equal(gateway.wire.length, 0);
  assert.deepEqual(gateway.outcomes(), []);
});

test('no listener stays on the signal of a listing that is over', async () => {
  const { server, gateway } = held();
  const { signal } = new AbortController();
  const listings = [gateway.list({ signal }), gateway.list({ signal })];
  assert.equal(getEventListeners(signal, 'abort').length, 2);
  server.release(tools(['a']));
  await Promise.all(listings);
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('what belongs to the request reaches whoever began it, while it waits', async () => {
  const { server, gateway } = held();
  const leader = new AbortController();
  const heard: string[] = [];
  const asked = (who: string) => async (message: Message) => {
    heard.push(`${who} ${message.method}`);
    return result('1', {});
  };
  const listings = Promise.allSettled([
    gateway.list({
      signal: leader.signal,
      notify: ({ method }) => heard.push(`leader ${method}`),
      ask: asked('leader'),
    }),
    gateway.list({ notify: ({ method }) => heard.push(`other ${method}`), ask: asked('other') }),
  ]);
  await settled();
  const [wire] = gateway.wire;
  const options: AskOptions = { signal: new AbortController().signal, onNotification: () => {} };
  wire?.notify(notification('notifications/progress'));
  await wire?.ask(request('1', 'elicitation/create'), options);
  leader.abort();
  wire?.notify(notification('notifications/progress'));
  const late = wire?.ask(request('2', 'elicitation/create'), options);
  await assert.rejects(late ?? Promise.resolve(), { code: 'agent_unreachable' });
  assert.deepEqual(heard, ['leader notifications/progress', 'leader elicitation/create']);
  server.release(tools(['a']));
  await listings;
});

test('a fresh listing asks the server, and what it brings replaces the entry', async () => {
  const { server, gateway } = held();
  const first = gateway.list();
  server.release(tools(['old']));
  await first;
  const fresh = gateway.list({ fresh: true });
  await settled();
  server.release(tools(['new']));
  assert.deepEqual(namesOf(await fresh), ['new']);
  assert.deepEqual(namesOf(await gateway.list()), ['new']);
  assert.deepEqual(gateway.outcomes(), ['miss', 'fresh', 'hit']);
});

test('a fresh listing joins no older fetch, and none that lands later replaces its result', async () => {
  const { server, gateway } = held();
  const older = gateway.list();
  const fresh = gateway.list({ fresh: true });
  await settled();
  assert.equal(gateway.wire.length, 2);
  server.release(tools(['new']), 1);
  assert.deepEqual(namesOf(await fresh), ['new']);
  server.release(tools(['old']));
  assert.deepEqual(namesOf(await older), ['old']);
  assert.deepEqual(namesOf(await gateway.list()), ['new']);
});

test('an older fetch does not bring back what a fresh one said not to keep', async () => {
  const { server, gateway } = held();
  const older = gateway.list();
  const fresh = gateway.list({ fresh: true });
  await settled();
  server.release(tools(['new'], { ttlMs: 0 }), 1);
  await fresh;
  server.release(tools(['old']));
  await older;
  void gateway.list();
  await settled();
  assert.equal(gateway.wire.length, 3);
});

test('an ordinary listing may join a fresh one that is under way', async () => {
  const { server, gateway } = held();
  const fresh = gateway.list({ fresh: true });
  const ordinary = gateway.list();
  server.release(tools(['a']));
  assert.deepEqual(await fresh, await ordinary);
  assert.equal(gateway.wire.length, 1);
});

test('many fresh listings at once cost three requests, and each gets an answer asked for after it came', async () => {
  const { server, gateway } = held();
  const listings = Array.from({ length: 50 }, () => gateway.list({ fresh: true }));
  await settled();
  assert.equal(gateway.wire.length, 2);
  server.release(tools(['1']));
  await settled();
  assert.equal(gateway.wire.length, 3);
  server.release(tools(['2']));
  server.release(tools(['3']));
  const names = (await Promise.all(listings)).flatMap(namesOf);
  assert.deepEqual(names, ['1', '2', ...Array(48).fill('3')]);
});

test('a fetch that waits begins in the name of someone who still does, and not at all for nobody', async () => {
  const { server, gateway } = held();
  const gone = new AbortController();
  const running = [gateway.list({ fresh: true }), gateway.list({ fresh: true })];
  const left = gateway.list({ fresh: true, id: '3', signal: gone.signal });
  const stays = gateway.list({ fresh: true, id: '4' });
  await settled();
  gone.abort();
  await assert.rejects(left, { code: 'cancelled' });
  server.release(tools(['1']));
  await settled();
  assert.equal(gateway.wire[2]?.message.id, '4');
  server.release(tools(['2']));
  server.release(tools(['3']));
  await Promise.all([...running, stays]);

  const alone = new AbortController();
  const two = [gateway.list({ fresh: true }), gateway.list({ fresh: true })];
  const nobody = gateway.list({ fresh: true, signal: alone.signal });
  await settled();
  alone.abort();
  await assert.rejects(nobody, { code: 'cancelled' });
  for (const _ of two) server.release(tools(['x']));
  await Promise.all(two);
  await settled();
  assert.equal(gateway.wire.length, 5);
});

test('a public answer asked for earlier does not replace a shared one asked for later by someone else', async () => {
  const { server, gateway } = held({ sharePublic: () => true });
  const earlier = gateway.list({ token: 'A' });
  const later = gateway.list({ token: 'B' });
  await settled();
  server.release(tools(['later'], { cacheScope: 'public' }), 1);
  await later;
  server.release(tools(['earlier'], { cacheScope: 'public' }));
  assert.deepEqual(namesOf(await earlier), ['earlier']);
  for (const token of ['A', 'B', 'C']) assert.deepEqual(namesOf(await gateway.list({ token })), ['later']);
});

test('a public answer asked for earlier is not shared once a later one has called the list private', async () => {
  const { server, gateway } = held({ sharePublic: () => true });
  const earlier = gateway.list({ token: 'A' });
  const later = gateway.list({ token: 'B' });
  await settled();
  server.release(tools(['B only'], { cacheScope: 'private' }), 1);
  server.release(tools(['A'], { cacheScope: 'public' }));
  await Promise.all([earlier, later]);
  assert.deepEqual(namesOf(await gateway.list({ token: 'B' })), ['B only']);
  void gateway.list({ token: 'C' });
  await settled();
  assert.equal(gateway.wire.length, 3);
});

test('what a server asks one agent is asked of no other that reads the same', async () => {
  const { server, gateway } = held();
  const read = { era: 'modern', method: 'resources/read', params: '{"uri":"a"}' } as const;
  const [first, second] = [gateway.send(read), gateway.send(read)];
  server.release('{"resultType":"input_required","requestState":"of the first"}');
  assert.match((await first).bytes.toString(), /of the first/);
  await settled();
  server.release('{"resultType":"input_required","requestState":"of the second"}');
  assert.match((await second).bytes.toString(), /of the second/);
});

test('agents that may be asked do not share the answer to what they read', async () => {
  const { server, gateway } = held();
  const read = { method: 'resources/read', params: '{"uri":"a"}' };
  const [first, second] = [gateway.send({ ...read, agent: 'A' }), gateway.send({ ...read, agent: 'B' })];
  server.release('{"contents":["as A answered"],"ttlMs":0}');
  server.release('{"contents":["as B answered"],"ttlMs":0}');
  assert.match((await first).bytes.toString(), /as A/);
  assert.match((await second).bytes.toString(), /as B/);
});
