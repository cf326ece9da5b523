import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../src/base/errors.js';
import { remainingTtlMs } from '../../src/protocol/hints.js';
import { readMessage } from '../../src/wire/message.js';
import { type Ask, answer, countingServer, Gateway, HeldServer, refusal, tools } from './gateway.js';

const MODERN: Ask = { era: 'modern' };
const MINUTE = 60_000;

function hintsOf(result: Record<string, unknown>): unknown[] {
  return [result['resultType'], result['ttlMs'], result['cacheScope']];
}

test('a modern agent is told what remains of the server’s time, on a miss and on a hit', async () => {
  const gateway = new Gateway(countingServer({ ttlMs: 10_000, cacheScope: 'private' }));
  assert.deepEqual(hintsOf(await gateway.list(MODERN)), ['complete', 10_000, 'private']);
  gateway.clock.advance(4_000.6);
  assert.deepEqual(hintsOf(await gateway.list(MODERN)), ['complete', 5_999, 'private']);
  gateway.clock.advance(5_999);
  assert.deepEqual(hintsOf(await gateway.list(MODERN)), ['complete', 0, 'private']);
  gateway.clock.advance(1);
  assert.deepEqual(hintsOf(await gateway.list(MODERN)), ['complete', 10_000, 'private']);
  assert.equal(gateway.wire.length, 2);
});

test('a modern agent is told what remains of our default where the server gives no time', async () => {
  const gateway = new Gateway(countingServer());
  assert.deepEqual(hintsOf(await gateway.list(MODERN)), ['complete', MINUTE, 'private']);
  gateway.clock.advance(MINUTE - 1);
  assert.deepEqual(hintsOf(await gateway.list(MODERN)), ['complete', 1, 'private']);
});

test('a default that changes counts at once, for what is told too', async () => {
  let defaultMs = MINUTE;
  const gateway = new Gateway(countingServer(), { defaultTtlMs: () => defaultMs });
  await gateway.list(MODERN);
  defaultMs = 2 * MINUTE;
  gateway.clock.advance(MINUTE);
  assert.deepEqual(hintsOf(await gateway.list(MODERN)), ['complete', MINUTE, 'private']);
});

test('no agent is told more than our bound', async () => {
  const gateway = new Gateway(countingServer({ ttlMs: 1e20 }));
  assert.deepEqual(hintsOf(await gateway.list(MODERN)), ['complete', 15 * MINUTE, 'private']);
});

test('what is not kept is told to be stale at once', async () => {
  for (const ttlMs of [0, -5]) {
    const gateway = new Gateway(countingServer({ ttlMs, cacheScope: 'public' }));
    assert.deepEqual(hintsOf(await gateway.list(MODERN)), ['complete', 0, 'private']);
  }
});

test('malformed hints of a server leave as valid ones', async () => {
  for (const hints of [
    { ttlMs: '60', cacheScope: 'shared' },
    { ttlMs: null, cacheScope: 1 },
    { ttlMs: {}, cacheScope: 'PUBLIC' },
  ]) {
    const gateway = new Gateway(countingServer(hints));
    assert.deepEqual(hintsOf(await gateway.list(MODERN)), ['complete', MINUTE, 'private']);
  }
});

test('a list is called public only where it is kept for everybody', async () => {
  const server = () => countingServer({ ttlMs: MINUTE, cacheScope: 'public' });
  const open = new Gateway(server());
  assert.equal((await open.list(MODERN))['cacheScope'], 'public');
  assert.equal((await open.list({ ...MODERN, token: 'A' }))['cacheScope'], 'public');
  const credential = new Gateway(server());
  for (const _ of ['miss', 'hit'])
    assert.equal((await credential.list({ ...MODERN, token: 'A' }))['cacheScope'], 'private');
  const allowed = new Gateway(server(), { sharePublic: () => true });
  assert.equal((await allowed.list({ ...MODERN, token: 'A' }))['cacheScope'], 'public');
});

test('a legacy agent is told none of the three, whatever the server says', async () => {
  const gateway = new Gateway(
    countingServer({ ttlMs: MINUTE, cacheScope: 'public', resultType: 'complete' }),
  );
  for (const _ of ['miss', 'hit']) {
    const list = await gateway.list();
    assert.deepEqual(Object.keys(list), ['tools']);
  }
});

test('with `hints: always` a legacy agent is told time and scope, and no type', async () => {
  const gateway = new Gateway(countingServer({ ttlMs: MINUTE, resultType: 'complete' }), { hints: 'always' });
  await gateway.list();
  gateway.clock.advance(1_000);
  assert.deepEqual(hintsOf(await gateway.list()), [undefined, MINUTE - 1_000, 'private']);
});

test('agents of both eras that come in turns are each answered in their own way', async () => {
  const gateway = new Gateway(countingServer({ ttlMs: MINUTE }));
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(hintsOf(await gateway.list(MODERN)), ['complete', MINUTE, 'private']);
    assert.deepEqual(hintsOf(await gateway.list()), [undefined, undefined, undefined]);
  }
  assert.equal(gateway.wire.length, 2);
  gateway.changed();
  await gateway.list(MODERN);
  await gateway.list();
  assert.equal(gateway.wire.length, 4);
});

test('hits of one id and one instant are the same bytes as the miss', async () => {
  const tool = fc.record({ name: fc.string({ unit: 'binary' }), extra: fc.jsonValue() });
  const hint = fc.constantFrom(undefined, 5, 60_000, 'x', null);
  await fc.assert(
    fc.asyncProperty(fc.array(tool, { maxLength: 4 }), hint, fc.nat(3), async (list, ttlMs, indent) => {
      const result = JSON.stringify({ first: 1, ttlMs, tools: list, last: [] }, null, indent);
      const text = `{"result":${result}, "jsonrpc":"2.0","id":7}`;
      const gateway = new Gateway(async () => readMessage(Buffer.from(text)));
      const [miss, hit, other] = [
        await gateway.send({ ...MODERN, id: '"a"' }),
        await gateway.send({ ...MODERN, id: '"a"' }),
        await gateway.send({ ...MODERN, id: '12345' }),
      ];
      assert.equal(hit.bytes.toString(), miss.bytes.toString());
      assert.equal(other.bytes.toString(), miss.bytes.toString().replace(/"id":"a"\}$/, '"id":12345}'));
      assert.equal(other.id, '12345');
      const { idSpan, body } = other;
      assert.equal(other.bytes.toString('utf8', idSpan?.start, idSpan?.end), '12345');
      const told = JSON.parse(other.bytes.toString('utf8', body?.start, body?.end)) as Record<
        string,
        unknown
      >;
      assert.deepEqual(told['tools'], JSON.parse(JSON.stringify(list)));
      assert.equal(gateway.wire.length, 1);
    }),
    { numRuns: 60 },
  );
});

test('errors and calls for input pass untouched and are never kept', async () => {
  const asking = '{"resultType":"input_required","inputRequests":{"q":{"method":"roots/list"}}}';
  for (const make of [() => asking, undefined]) {
    const gateway = new Gateway(async (exchange) => (make ? answer(exchange, make()) : refusal(exchange, 5)));
    const read = { ...MODERN, method: 'resources/read', params: '{"uri":"a"}' };
    const first = await gateway.send(read);
    assert.equal(first.bytes.includes('ttlMs'), false);
    await gateway.send(read);
    assert.equal(gateway.wire.length, 2);
  }
});

test('the answer to a request that brings inputs is neither kept nor shared', async () => {
  const server = new HeldServer();
  const gateway = new Gateway(server.handler);
  const read = (rest: string) => ({ ...MODERN, method: 'resources/read', params: `{"uri":"a"${rest}}` });
  const inputs = [',"inputResponses":{"q":{}}', ',"requestState":"s"'];
  for (const rest of inputs) {
    const both = [gateway.send(read(rest)), gateway.send(read(rest))];
    for (const _ of both) server.release('{"contents":[],"ttlMs":5000,"cacheScope":"public"}');
    for (const one of await Promise.all(both)) {
      const result = JSON.parse(one.bytes.toString()).result as Record<string, unknown>;
      assert.deepEqual(hintsOf(result), ['complete', 5_000, 'private']);
    }
  }
  assert.equal(gateway.wire.length, 4);
});

test('a resource without a time of its server’s is told to be stale at once', async () => {
  const gateway = new Gateway(async (exchange) => answer(exchange, '{"contents":[]}'));
  const read = { ...MODERN, method: 'resources/read', params: '{"uri":"a"}' };
  for (const _ of [1, 2]) assert.deepEqual(hintsOf(await gateway.list(read)), ['complete', 0, 'private']);
  assert.equal(gateway.wire.length, 2);
});

test('an answer that a purge overtook is told to be stale', async () => {
  const server = new HeldServer();
  const gateway = new Gateway(server.handler);
  const listing = gateway.list(MODERN);
  gateway.changed();
  server.release(tools(['a'], { ttlMs: MINUTE }));
  assert.deepEqual(hintsOf(await listing), ['complete', 0, 'private']);
});

test('a list that is served because its server is down is told to be stale', async () => {
  let down = false;
  const gateway = new Gateway(async (exchange) => {
    if (down) throw new GatewayError('server_unavailable', 'down');
    return answer(exchange, tools(['a'], { ttlMs: MINUTE }));
  });
  await gateway.list(MODERN);
  down = true;
  gateway.doubts.doubt('alpha');
  assert.deepEqual(hintsOf(await gateway.list(MODERN)), ['complete', 0, 'private']);
});

test('`server/discover` is kept and told of like a list', async () => {
  const gateway = new Gateway(async (exchange) =>
    answer(exchange, '{"supportedVersions":["2026-07-28"],"capabilities":{}}'),
  );
  const discover = { ...MODERN, method: 'server/discover' };
  assert.deepEqual(hintsOf(await gateway.list(discover)), ['complete', MINUTE, 'private']);
  gateway.clock.advance(1);
  assert.deepEqual(hintsOf(await gateway.list(discover)), ['complete', MINUTE - 1, 'private']);
  gateway.changed('alpha', { reason: 'reinitialized' });
  await gateway.list(discover);
  assert.equal(gateway.wire.length, 2);
});

test('what remains is never negative, and whole', () => {
  assert.deepEqual([remainingTtlMs(10.9, 0), remainingTtlMs(1, 2), remainingTtlMs(5, 5)], [10, 0, 0]);
});
