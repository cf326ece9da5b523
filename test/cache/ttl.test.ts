import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answer, countingServer, Gateway, HeldServer, namesOf, refusal, settled, tools } from './gateway.js';

const MINUTE_MS = 60_000;

test('two listings within the server’s TTL cost one request and are equal', async () => {
  const gateway = new Gateway(countingServer({ ttlMs: 60_000 }));
  assert.deepEqual(await gateway.list(), await gateway.list());
  assert.equal(gateway.wire.length, 1);
  assert.deepEqual(gateway.outcomes(), ['miss', 'hit']);
});

test('a list without a TTL is kept for the default one', async () => {
  const gateway = new Gateway(countingServer());
  await gateway.list();
  gateway.clock.advance(59_999);
  await gateway.list();
  assert.equal(gateway.wire.length, 1);
  gateway.clock.advance(1);
  assert.deepEqual(namesOf(await gateway.list()), ['v2']);
});

for (const defaultTtlMs of [0, -1])
  test(`a default TTL of ${defaultTtlMs} keeps nothing that has no TTL of its own`, async () => {
    const gateway = new Gateway(countingServer(), { defaultTtlMs: () => defaultTtlMs });
    await gateway.list();
    await gateway.list();
    assert.equal(gateway.wire.length, 2);
  });

test('the default TTL is read at each listing, for what is already kept too', async () => {
  let defaultTtlMs = MINUTE_MS;
  const gateway = new Gateway(countingServer(), { defaultTtlMs: () => defaultTtlMs });
  await gateway.list();
  defaultTtlMs = 0;
  await gateway.list();
  assert.equal(gateway.wire.length, 2);
  defaultTtlMs = MINUTE_MS;
  await gateway.list();
  await gateway.list();
  assert.equal(gateway.wire.length, 3);
});

test('the default TTL may differ from server to server', async () => {
  const gateway = new Gateway(countingServer(), { defaultTtlMs: (id) => (id === 'alpha' ? 0 : MINUTE_MS) });
  for (const serverId of ['alpha', 'alpha', 'beta', 'beta']) await gateway.list({ serverId });
  assert.deepEqual(
    gateway.wire.map(({ serverId }) => serverId),
    ['alpha', 'alpha', 'beta'],
  );
});

for (const ttlMs of ['0', '-5', '-1e400', '-0'])
  test(`a server’s TTL of ${ttlMs} is obeyed in spite of a default`, async () => {
    const gateway = new Gateway(async (exchange) => answer(exchange, `{"tools":[],"ttlMs":${ttlMs}}`));
    await gateway.list();
    await gateway.list();
    assert.equal(gateway.wire.length, 2);
  });

for (const ttlMs of ['"60000"', 'null', '{}', '[]', 'true', '""'])
  test(`a TTL of ${ttlMs} counts as none: the default applies`, async () => {
    const gateway = new Gateway(async (exchange) => answer(exchange, `{"tools":[],"ttlMs":${ttlMs}}`));
    await gateway.list();
    gateway.clock.advance(MINUTE_MS - 1);
    await gateway.list();
    assert.equal(gateway.wire.length, 1);
    gateway.clock.advance(1);
    await gateway.list();
    assert.equal(gateway.wire.length, 2);
  });

for (const ttlMs of ['3600000', '1e20', '1e400'])
  test(`a TTL of ${ttlMs} is clamped to 15 minutes`, async () => {
    const gateway = new Gateway(async (exchange) => answer(exchange, `{"tools":[],"ttlMs":${ttlMs}}`));
    await gateway.list();
    gateway.clock.advance(15 * MINUTE_MS - 1);
    await gateway.list();
    assert.equal(gateway.wire.length, 1);
    gateway.clock.advance(1);
    await gateway.list();
    assert.equal(gateway.wire.length, 2);
  });

test('the clamp can be set, and bounds the default as well', async () => {
  const gateway = new Gateway(countingServer(), { defaultTtlMs: () => 3_600_000, maxTtlMs: 5_000 });
  await gateway.list();
  gateway.clock.advance(4_999);
  await gateway.list();
  assert.equal(gateway.wire.length, 1);
  gateway.clock.advance(1);
  await gateway.list();
  assert.equal(gateway.wire.length, 2);
});

test('a TTL begins when the answer arrives, and has ended at exactly its end', async () => {
  const server = new HeldServer();
  const gateway = new Gateway(server.handler);
  const first = gateway.list();
  gateway.clock.advance(30_000);
  server.release(tools(['a'], { ttlMs: 10_000 }));
  await first;
  gateway.clock.advance(9_999);
  await gateway.list();
  assert.equal(gateway.wire.length, 1);
  gateway.clock.advance(1);
  void gateway.list();
  await settled();
  assert.equal(gateway.wire.length, 2);
});

test('a clock that is set back makes an entry stale, not long-lived', async () => {
  const gateway = new Gateway(countingServer());
  await gateway.list();
  gateway.clock.advance(-3_600_000);
  await gateway.list();
  assert.equal(gateway.wire.length, 2);
});

test('nothing is scheduled for the end of a TTL, and nothing asked for because of it', async () => {
  const gateway = new Gateway(countingServer({ ttlMs: 1_000 }));
  await gateway.list();
  assert.deepEqual(gateway.clock.delays, []);
  gateway.clock.advance(3_600_000);
  await settled();
  assert.equal(gateway.wire.length, 1);
});

test('a fresh answer with TTL 0 ends the older entry', async () => {
  let ttlMs = 60_000;
  const gateway = new Gateway(async (exchange) => answer(exchange, tools(['a'], { ttlMs })));
  await gateway.list();
  ttlMs = 0;
  await gateway.list({ fresh: true });
  await gateway.list();
  assert.equal(gateway.wire.length, 3);
});

test('a resource is kept only where the server states a TTL above 0', async () => {
  let hints = '';
  const gateway = new Gateway(async (exchange) => answer(exchange, `{"contents":[]${hints}}`));
  const read = { method: 'resources/read', params: '{"uri":"file:///a"}' };
  for (hints of ['', ',"ttlMs":0', ',"ttlMs":"60000"']) {
    await gateway.list(read);
    await gateway.list(read);
  }
  assert.equal(gateway.wire.length, 6);
  hints = ',"ttlMs":1000';
  await gateway.list(read);
  await gateway.list(read);
  assert.equal(gateway.wire.length, 7);
  gateway.clock.advance(1_000);
  await gateway.list(read);
  assert.equal(gateway.wire.length, 8);
});

for (const [method, member] of [
  ['prompts/list', 'prompts'],
  ['resources/list', 'resources'],
  ['resources/templates/list', 'resourceTemplates'],
  ['server/discover', 'capabilities'],
] as const)
  test(`${method} is kept by the same rules as tools/list`, async () => {
    const gateway = new Gateway(async (exchange) => answer(exchange, `{"${member}":[]}`));
    await gateway.list({ method });
    gateway.clock.advance(MINUTE_MS - 1);
    await gateway.list({ method });
    assert.equal(gateway.wire.length, 1);
    gateway.clock.advance(1);
    await gateway.list({ method });
    assert.equal(gateway.wire.length, 2);
  });

test('methods that list nothing pass each time', async () => {
  const gateway = new Gateway(async (exchange) => answer(exchange, '{"ttlMs":60000}'));
  for (const method of [
    'tools/call',
    'prompts/get',
    'completion/complete',
    'ping',
    'constructor',
    'vendor/list',
  ])
    for (const _ of [1, 2]) await gateway.list({ method });
  assert.equal(gateway.wire.length, 12);
  assert.deepEqual(gateway.outcomes(), []);
});

test('an empty list is an entry like any other', async () => {
  const gateway = new Gateway(async (exchange) => answer(exchange, tools([])));
  await gateway.list();
  assert.deepEqual(namesOf(await gateway.list()), []);
  assert.equal(gateway.wire.length, 1);
});

test('error answers are given out and not kept, and leave an entry that is still fresh alone', async () => {
  let failing = true;
  const gateway = new Gateway(async (exchange) =>
    failing ? refusal(exchange, -32_603) : answer(exchange, tools(['a'])),
  );
  assert.equal((await gateway.list())['code'], -32_603);
  assert.equal((await gateway.list())['code'], -32_603);
  failing = false;
  await gateway.list();
  failing = true;
  assert.equal((await gateway.list({ fresh: true }))['code'], -32_603);
  assert.deepEqual(namesOf(await gateway.list()), ['a']);
  assert.equal(gateway.wire.length, 4);
});
