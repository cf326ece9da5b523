import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../src/base/errors.js';
import { memoryStore } from '../../src/cache/memory.js';
import { emittedScope, remainingTtlMs } from '../../src/protocol/hints.js';
import { readMessage } from '../../src/wire/message.js';
import { type Ask, answer, countingServer, Gateway, HeldServer, namesOf, refusal, tools } from './gateway.js';

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

test('public is told only of what its server calls so and everybody is given', () => {
  const told = (['public', 'private'] as const).map((claimed) =>
    [true, false].map((shared) => emittedScope(claimed, shared)),
  );
  assert.deepEqual(told, [
    ['public', 'private'],
    ['private', 'private'],
  ]);
});

test('hints that are there are told where they stand, the others first of all', async () => {
  const text = (result: string) => `{"jsonrpc":"2.0","id":1,"result":${result}}`;
  for (const [given, leaves] of [
    ['{"tools":[]}', '{"resultType":"complete","ttlMs":60000,"cacheScope":"private","tools":[]}'],
    [
      '{"tools":[], "ttlMs" : 5e3}',
      '{"resultType":"complete","cacheScope":"private","tools":[], "ttlMs" : 5000}',
    ],
    [
      '{"cacheScope":"public","tools":[],"resultType":"complete"}',
      '{"ttlMs":60000,"cacheScope":"public","tools":[],"resultType":"complete"}',
    ],
    [
      '{"t\\u0074lMs":9,"tools":[],"cacheScope":{"a":[]}}',
      '{"resultType":"complete","t\\u0074lMs":9,"tools":[],"cacheScope":"private"}',
    ],
  ] as const) {
    const gateway = new Gateway(async () => readMessage(Buffer.from(text(given))));
    for (const _ of ['miss', 'hit'])
      assert.equal((await gateway.send(MODERN)).bytes.toString(), text(leaves));
  }
});

test('an empty result is told of too', async () => {
  const gateway = new Gateway(async (exchange) => answer(exchange, '{ }'));
  const read = { ...MODERN, method: 'resources/read', params: '{"uri":"a"}' };
  const { bytes } = await gateway.send(read);
  assert.equal(
    bytes.toString(),
    '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private" }}',
  );
});

test('what a legacy agent is not told leaves no trace, and nothing else moves', async () => {
  for (const [given, hints, leaves] of [
    ['{"ttlMs":1, "tools":[],"x":1.0}', 'modern', '{"tools":[],"x":1.0}'],
    ['{"tools":[] ,"ttlMs":1, "cacheScope":"public" }', 'modern', '{"tools":[] }'],
    [
      '{"resultType":"complete","tools":[],"ttlMs":9}',
      'always',
      '{"cacheScope":"private","tools":[],"ttlMs":9}',
    ],
    ['{"tools":[],"resultType":"complete"}', 'always', '{"ttlMs":60000,"cacheScope":"private","tools":[]}'],
  ] as const) {
    const gateway = new Gateway(async (exchange) => answer(exchange, given), { hints });
    for (const id of ['1', '22', '"three"'])
      assert.equal(
        (await gateway.send({ id })).bytes.toString(),
        `{"jsonrpc":"2.0","id":${id},"result":${leaves}}`,
      );
    assert.equal(gateway.wire.length, 1);
  }
});

test('every answer names its own request and says where its parts are, for any length of id and time', async () => {
  for (const order of ['before', 'behind']) {
    const text = (id: string) => {
      const result = '"result":{"tools":[{"name":"\u00e9"}]}';
      return order === 'before'
        ? `{"id":${id},${result},"jsonrpc":"2.0"}`
        : `{${result},"jsonrpc":"2.0","id":${id}}`;
    };
    const gateway = new Gateway(async ({ message }) => readMessage(Buffer.from(text(message.id))));
    for (const id of ['5', '123456', '"\u20ac\\n"', '9007199254740993'])
      for (const era of ['modern', 'legacy'] as const) {
        gateway.clock.advance(7_777);
        const message = await gateway.send({ era, id });
        assert.deepEqual(message, readMessage(message.bytes));
        assert.equal(message.id, id);
      }
  }
});

test('a list that the store has no room for is told to be stale', async () => {
  const store = memoryStore({ maxBytes: 100, maxEntries: 10 });
  const gateway = new Gateway(countingServer({ ttlMs: MINUTE }), { store });
  assert.deepEqual(hintsOf(await gateway.list(MODERN)), ['complete', 0, 'private']);
});

test('modern agents that come together share one request, and each answer has its own id', async () => {
  const server = new HeldServer();
  const gateway = new Gateway(server.handler);
  const ids = ['1', '"one"', '22'];
  const sent = ids.map((id) => gateway.send({ ...MODERN, id, params: '{"_meta":{"progressToken":1}}' }));
  server.release(tools(['a'], { ttlMs: MINUTE }));
  const answers = await Promise.all(sent);
  assert.deepEqual(
    answers.map(({ bytes }) => readMessage(bytes).id),
    ids,
  );
  for (const { bytes } of answers)
    assert.deepEqual(hintsOf(JSON.parse(bytes.toString()).result), ['complete', MINUTE, 'private']);
  assert.deepEqual(gateway.outcomes(), ['miss', 'collapsed', 'collapsed']);
});

test('a modern agent that goes takes nobody’s list along', async () => {
  const server = new HeldServer();
  const gateway = new Gateway(server.handler);
  const going = new AbortController();
  const gone = gateway.send({ ...MODERN, signal: going.signal });
  const stays = gateway.list({ ...MODERN, id: '2' });
  going.abort(new GatewayError('cancelled', 'closed'));
  await assert.rejects(gone, { code: 'cancelled' });
  assert.equal(server.held[0]?.exchange.signal.aborted, false);
  server.release(tools(['a']));
  assert.deepEqual(namesOf(await stays), ['a']);
});

test('modern agents of other capabilities, tokens or era never share an entry', async () => {
  const gateway = new Gateway(countingServer({ ttlMs: MINUTE }));
  const others: Ask[] = [
    MODERN,
    { ...MODERN, fingerprint: '{"elicitation":{}}' },
    { ...MODERN, token: 'A' },
    { ...MODERN, token: 'B' },
    {},
  ];
  for (const _ of ['miss', 'hit']) for (const ask of others) await gateway.list(ask);
  assert.equal(gateway.wire.length, others.length);
});

test('a call of a modern agent that contradicts its list purges it for agents of both eras', async () => {
  for (const code of [-32_602, -32_601, -32_020]) {
    const gateway = new Gateway(async (exchange) =>
      exchange.message.method === 'tools/call' ? refusal(exchange, code) : answer(exchange, tools(['a'])),
    );
    const listings = async () => {
      for (const ask of [MODERN, {}]) await gateway.list(ask);
      return gateway.wire.splice(0).length;
    };
    assert.deepEqual([await listings(), await listings()], [2, 0]);
    const refused = await gateway.send({ ...MODERN, method: 'tools/call', params: '{"name":"a"}' });
    assert.equal(refused.bytes.includes('ttlMs'), false);
    gateway.wire.length = 0;
    assert.equal(await listings(), 2);
  }
});

test('a resource is kept for the time its server gives, until it is updated', async () => {
  const gateway = new Gateway(async (exchange) =>
    answer(exchange, '{"resultType":"complete","contents":[],"ttlMs":5000,"cacheScope":"public"}'),
  );
  const read = (uri: string) =>
    gateway.list({ ...MODERN, method: 'resources/read', params: JSON.stringify({ uri }) });
  for (const uri of ['a', 'b']) await read(uri);
  gateway.clock.advance(1_000);
  assert.deepEqual(hintsOf(await read('a')), ['complete', 4_000, 'public']);
  gateway.changed('alpha', { reason: 'updated', kinds: ['resources'], uri: 'a' });
  assert.deepEqual(hintsOf(await read('a')), ['complete', 5_000, 'public']);
  assert.deepEqual(hintsOf(await read('b')), ['complete', 4_000, 'public']);
  assert.equal(gateway.wire.length, 3);
});

test('each page tells its own time', async () => {
  const gateway = new Gateway(async (exchange) => {
    const last = exchange.message.bytes.includes('cursor');
    return answer(
      exchange,
      last ? tools(['b'], { ttlMs: 1_000 }) : tools(['a'], { ttlMs: 9_000, nextCursor: '2' }),
    );
  });
  const page = (params: string) => gateway.list({ ...MODERN, params });
  await page('{}');
  gateway.clock.advance(500);
  assert.deepEqual(hintsOf(await page('{"cursor":"2"}')), ['complete', 1_000, 'private']);
  gateway.clock.advance(500);
  assert.deepEqual(hintsOf(await page('{"cursor":"2"}')), ['complete', 500, 'private']);
  assert.deepEqual(hintsOf(await page('{}')), ['complete', 8_000, 'private']);
});

test('a result that names a member twice leaves as it came', async () => {
  const gateway = new Gateway(async (exchange) => answer(exchange, '{"contents":[],"ttlMs":1,"ttlMs":2}'));
  for (const era of ['modern', 'legacy'] as const) {
    const { bytes } = await gateway.send({ era, method: 'resources/read', params: '{"uri":"a"}' });
    assert.match(bytes.toString(), /"result":\{"contents":\[\],"ttlMs":1,"ttlMs":2\}/);
  }
});
