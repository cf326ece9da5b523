import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError, type GatewayErrorCode } from '../../src/base/errors.js';
import { answer, Gateway, HeldServer, namesOf, refusal, settled, tools } from './gateway.js';

/** A server that answers with the count of its listings, or fails as it is told. */
function fallible() {
  const state: { failure: GatewayErrorCode | number | undefined; count: number } = {
    failure: undefined,
    count: 0,
  };
  const gateway = new Gateway(async (exchange) => {
    const { failure } = state;
    if (typeof failure === 'string') throw new GatewayError(failure, 'Server "alpha" failed');
    if (typeof failure === 'number') return refusal(exchange, failure);
    return answer(exchange, tools([`v${++state.count}`]));
  });
  return { state, gateway };
}

test('a hit needs no server at all', async () => {
  const { state, gateway } = fallible();
  await gateway.list();
  state.failure = 'server_unavailable';
  assert.deepEqual(namesOf(await gateway.list()), ['v1']);
});

test('what was asked for before a doubt is asked for again, and kept again', async () => {
  const { gateway } = fallible();
  await gateway.list();
  gateway.doubts.doubt('alpha');
  assert.deepEqual(namesOf(await gateway.list()), ['v2']);
  assert.deepEqual(namesOf(await gateway.list()), ['v2']);
  assert.deepEqual(gateway.outcomes(), ['miss', 'miss', 'hit']);
});

test('a doubt of one server leaves the others', async () => {
  const { gateway } = fallible();
  await gateway.list({ serverId: 'alphaX' });
  gateway.doubts.doubt('alpha');
  await gateway.list({ serverId: 'alphaX' });
  assert.equal(gateway.wire.length, 1);
});

for (const code of ['server_unavailable', 'server_timeout', 'session_lost', 'outcome_unknown'] as const)
  test(`a doubted list is served while it is fresh and the server fails with ${code}`, async () => {
    const { state, gateway } = fallible();
    await gateway.list();
    gateway.doubts.doubt('alpha');
    state.failure = code;
    for (const _ of [1, 2]) assert.deepEqual(namesOf(await gateway.list()), ['v1']);
    assert.equal(gateway.wire.length, 3);
    gateway.clock.advance(60_000);
    await assert.rejects(gateway.list(), { code });
    state.failure = undefined;
    assert.deepEqual(namesOf(await gateway.list()), ['v2']);
  });

for (const code of ['unauthorized', 'server_protocol', 'at_capacity', 'cancelled'] as const)
  test(`a doubted list is no answer to ${code}`, async () => {
    const { state, gateway } = fallible();
    await gateway.list();
    gateway.doubts.doubt('alpha');
    state.failure = code;
    await assert.rejects(gateway.list(), { code });
  });

test('an error that the server answers is given out though a doubted list is kept', async () => {
  const { state, gateway } = fallible();
  await gateway.list();
  gateway.doubts.doubt('alpha');
  state.failure = -32_603;
  assert.equal((await gateway.list())['code'], -32_603);
});

test('a fresh listing of a server that is down fails, doubted list or not', async () => {
  const { state, gateway } = fallible();
  await gateway.list();
  state.failure = 'server_unavailable';
  await assert.rejects(gateway.list({ fresh: true }), { code: 'server_unavailable' });
  assert.deepEqual(namesOf(await gateway.list()), ['v1']);
});

test('a list that is purged while the server is asked is not served when that fails', async () => {
  const server = new HeldServer();
  const gateway = new Gateway(server.handler);
  const first = gateway.list();
  server.release(tools(['a']));
  await first;
  gateway.doubts.doubt('alpha');
  const second = gateway.list();
  await settled();
  gateway.changed();
  server.release(new GatewayError('server_unavailable', 'Server "alpha" is down'));
  await assert.rejects(second, { code: 'server_unavailable' });
});

test('an answer asked for before a doubt is doubted when it lands after it', async () => {
  const server = new HeldServer();
  const gateway = new Gateway(server.handler);
  const before = gateway.list();
  await settled();
  gateway.doubts.doubt('alpha');
  const after = gateway.list();
  await settled();
  assert.equal(gateway.wire.length, 2);
  server.release(tools(['before']));
  assert.deepEqual(namesOf(await before), ['before']);
  server.release(tools(['after']));
  assert.deepEqual(namesOf(await after), ['after']);
  assert.deepEqual(namesOf(await gateway.list()), ['after']);
});

test('every page of a doubted walk is asked for again', async () => {
  const gateway = new Gateway(async (exchange) => answer(exchange, tools(['x'], { nextCursor: 'n' })));
  const walk = async () => {
    await gateway.list();
    await gateway.list({ params: '{"cursor":"n"}' });
  };
  await walk();
  gateway.doubts.doubt('alpha');
  await walk();
  await walk();
  assert.equal(gateway.wire.length, 4);
});
