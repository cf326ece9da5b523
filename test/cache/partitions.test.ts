import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryStore } from '../../src/cache/memory.js';
import type { Entry, Store } from '../../src/cache/store.js';
import type { Handler } from '../../src/pipeline/exchange.js';
import { answer, Gateway, namesOf, settled, tools } from './gateway.js';

/** A server that shows each caller the name of its token. */
function tokenServer(hints: Record<string, unknown> = {}): Handler {
  return async (exchange) => answer(exchange, tools([exchange.caller.token ?? 'nobody'], hints));
}

test('a private list is fetched for each token, and kept for it while others come between', async () => {
  const gateway = new Gateway(tokenServer());
  for (const token of ['A', 'B', 'B', 'A', undefined, 'A', undefined])
    assert.deepEqual(namesOf(await gateway.list({ token })), [token ?? 'nobody']);
  assert.deepEqual(
    gateway.wire.map(({ caller }) => caller.token),
    ['A', 'B', undefined],
  );
});

test('a rotated token is a miss and then a hit', async () => {
  const gateway = new Gateway(tokenServer());
  for (const token of ['old', 'new', 'new']) await gateway.list({ token });
  assert.deepEqual(gateway.outcomes(), ['miss', 'miss', 'hit']);
});

for (const cacheScope of [undefined, null, 'org', 'PUBLIC', 'shared', 1, ['public']])
  test(`a scope of ${JSON.stringify(cacheScope)} is private`, async () => {
    const gateway = new Gateway(tokenServer({ ttlMs: 60_000, cacheScope }), { sharePublic: () => true });
    await gateway.list({ token: 'A' });
    assert.deepEqual(namesOf(await gateway.list({ token: 'B' })), ['B']);
  });

test('a public list fetched without a token is shared with everybody', async () => {
  const gateway = new Gateway(tokenServer({ cacheScope: 'public' }));
  for (const token of [undefined, 'A', 'B']) await gateway.list({ token });
  assert.equal(gateway.wire.length, 1);
});

test('a public list fetched with a token is shared only where the operator allows it', async () => {
  const server = tokenServer({ cacheScope: 'public' });
  const careful = new Gateway(server);
  for (const token of ['A', 'B', 'A', undefined]) await careful.list({ token });
  assert.equal(careful.wire.length, 3);
  const trusting = new Gateway(server, { sharePublic: (id) => id === 'alpha' });
  for (const token of ['A', 'B', undefined]) await trusting.list({ token });
  assert.equal(trusting.wire.length, 1);
  for (const token of ['A', 'B']) await trusting.list({ serverId: 'beta', token });
  assert.equal(trusting.wire.length, 3);
});

test('a server that must not share shares nothing, not even what was shared before', async () => {
  let allowed = true;
  const gateway = new Gateway(tokenServer({ cacheScope: 'public' }), { sharePublic: () => allowed });
  await gateway.list({ token: 'A' });
  allowed = false;
  assert.deepEqual(namesOf(await gateway.list({ token: 'B' })), ['B']);
  assert.deepEqual(namesOf(await gateway.list({ token: 'A' })), ['A']);
  assert.deepEqual(namesOf(await gateway.list()), ['nobody']);
});

test('a list that turns private is no longer shared, and one that turns public is', async () => {
  let cacheScope = 'public';
  const gateway = new Gateway(async (exchange) =>
    answer(exchange, tools([exchange.caller.token ?? 'nobody'], { cacheScope })),
  );
  await gateway.list();
  cacheScope = 'private';
  await gateway.list({ token: 'A', fresh: true });
  assert.deepEqual(namesOf(await gateway.list({ token: 'B' })), ['B']);
  assert.deepEqual(namesOf(await gateway.list({ token: 'A' })), ['A']);
  cacheScope = 'public';
  await gateway.list({ fresh: true });
  assert.deepEqual(namesOf(await gateway.list({ token: 'C' })), ['nobody']);
});

test('TTL 0 ends the shared entry for everybody', async () => {
  let ttlMs = 60_000;
  const gateway = new Gateway(async (exchange) =>
    answer(exchange, tools(['a'], { ttlMs, cacheScope: 'public' })),
  );
  await gateway.list();
  ttlMs = 0;
  await gateway.list({ fresh: true });
  await gateway.list({ token: 'B' });
  assert.equal(gateway.wire.length, 3);
});

test('callers that an isolated server keeps apart have lists of their own', async () => {
  const gateway = new Gateway(tokenServer(), {
    isolate: ({ profile }) => `#principal:${profile.fingerprint}`,
  });
  for (const fingerprint of ['{"a":1}', '{"b":1}']) await gateway.list({ token: 'A', fingerprint });
  assert.equal(gateway.wire.length, 2);
});

test('agents that declare other capabilities have lists of their own, public ones too', async () => {
  const gateway = new Gateway(tokenServer({ cacheScope: 'public' }));
  for (const fingerprint of ['{}', '{"sampling":{}}', '{}']) await gateway.list({ fingerprint });
  assert.equal(gateway.wire.length, 2);
});

test('two servers never share an entry, whatever they call themselves', async () => {
  const gateway = new Gateway(async (exchange) =>
    answer(exchange, tools([exchange.serverId], { cacheScope: 'public', serverInfo: { name: 'same' } })),
  );
  for (const serverId of ['alpha', 'alphaX', 'alpha#', 'beta'])
    assert.deepEqual(namesOf(await gateway.list({ serverId })), [serverId]);
});

test('ten callers of two servers who list ten times cost one request for each server and token', async () => {
  const gateway = new Gateway(tokenServer());
  for (let round = 0; round < 10; round++)
    for (let caller = 0; caller < 10; caller++)
      for (const serverId of ['alpha', 'beta']) await gateway.list({ serverId, token: `t${caller % 2}` });
  assert.equal(gateway.wire.length, 4);
});

test('a token is in no key, no event and no error', async () => {
  const seen: string[] = [];
  const inner = memoryStore({ maxBytes: 1024 * 1024, maxEntries: 100 });
  const commit = (entry: Entry) => {
    seen.push(JSON.stringify({ ...entry, message: undefined }));
    inner.commit(entry);
  };
  const store: Store = { ...inner, commit };
  const gateway = new Gateway(async (exchange) => answer(exchange, '{"tools":[],"nextCursor":"2"}'), {
    store,
  });
  await gateway.list({ token: 'raw-secret' });
  const broken = new Gateway(async (exchange) => answer(exchange, '{"tools":{}}'));
  const failure = await broken.list({ token: 'raw-secret' }).catch(String);
  const all = JSON.stringify([seen, gateway.events, broken.events, failure]);
  assert.match(all, /alpha#[0-9a-f]{64}/);
  assert.doesNotMatch(all, /raw-secret/);
});

test('ten thousand rotated tokens leave a bounded number of entries', async () => {
  const store = memoryStore({ maxBytes: 64 * 1024 * 1024, maxEntries: 100 });
  const gateway = new Gateway(tokenServer(), { store });
  for (let i = 0; i < 10_000; i++) await gateway.send({ token: `token-${i}` });
  const kept = store.select({ by: 'kind', serverId: 'alpha', kinds: [], poolKey: undefined });
  assert.equal(kept.length, 100);
  await gateway.send({ token: 'token-9999' });
  assert.equal(gateway.wire.length, 10_000);
});

test('a fetch in the name of one token is never joined in the name of another', async () => {
  const gateway = new Gateway(tokenServer({ cacheScope: 'public' }), { sharePublic: () => true });
  const [a, b] = await Promise.all([gateway.list({ token: 'A' }), gateway.list({ token: 'B' })]);
  assert.deepEqual([namesOf(a), namesOf(b)], [['A'], ['B']]);
  await settled();
  assert.equal(gateway.wire.length, 2);
});
