import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Change } from '../../src/pipeline/changes.js';
import { poolKey } from '../../src/protocol/pool-key.js';
import {
  answer,
  callerOf,
  countingServer,
  Gateway,
  HeldServer,
  namesOf,
  refusal,
  settled,
  tools,
} from './gateway.js';

const LISTS = {
  'tools/list': 'tools',
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
} as const;

/** Answers every kind of list, with a TTL that keeps resources too. */
function anyServer(cacheScope = 'private'): Gateway {
  return new Gateway(
    async (exchange) => {
      const member = LISTS[exchange.message.method as keyof typeof LISTS] ?? 'contents';
      return answer(exchange, JSON.stringify({ [member]: [], ttlMs: 60_000, cacheScope }));
    },
    { sharePublic: () => true },
  );
}

test('a change makes the next listing ask, in every scope of that server and no other', async () => {
  const gateway = new Gateway(
    async (exchange) => {
      const cacheScope = exchange.caller.token === 'P' ? 'public' : 'private';
      return answer(exchange, tools([], { cacheScope }));
    },
    { sharePublic: () => true },
  );
  const askAll = async () => {
    for (const token of ['A', undefined]) await gateway.list({ token });
    for (const serverId of ['alphaX', 'beta']) await gateway.list({ serverId });
    await gateway.list({ token: 'P', fingerprint: '{"x":1}' });
  };
  await askAll();
  assert.equal(gateway.wire.length, 5);
  gateway.changed('alpha');
  gateway.wire.length = 0;
  await askAll();
  assert.deepEqual(
    gateway.wire.map(({ serverId, caller }) => [serverId, caller.token]),
    [
      ['alpha', 'A'],
      ['alpha', undefined],
      ['alpha', 'P'],
    ],
  );
});

test('a change of one kind leaves the other kinds', async () => {
  const gateway = anyServer();
  for (const method of Object.keys(LISTS)) await gateway.list({ method });
  gateway.wire.length = 0;
  gateway.changed('alpha', { kinds: ['resources'] });
  for (const method of Object.keys(LISTS)) await gateway.list({ method });
  assert.deepEqual(
    gateway.wire.map(({ message }) => message.method),
    ['resources/list', 'resources/templates/list'],
  );
});

test('an updated resource is read anew, and nothing else is', async () => {
  const gateway = anyServer();
  const askAll = async () => {
    for (const uri of ['file:///a', 'file:///b'])
      await gateway.list({ method: 'resources/read', params: JSON.stringify({ uri }) });
    await gateway.list({ method: 'resources/list' });
  };
  await askAll();
  gateway.wire.length = 0;
  gateway.changed('alpha', { reason: 'updated', kinds: ['resources'], uri: 'file:///a' });
  await askAll();
  assert.equal(gateway.wire.length, 1);
  assert.match(gateway.wire[0]?.message.bytes.toString() ?? '', /file:\/\/\/a/);
});

test('the end of one pool key drops that token’s lists only', async () => {
  const gateway = anyServer();
  for (const token of ['A', 'B', undefined]) await gateway.list({ token });
  gateway.changed('alpha', { reason: 'closed', poolKey: poolKey('alpha', callerOf('A').tokenHash) });
  for (const token of ['B', undefined, 'A']) await gateway.list({ token });
  assert.deepEqual(gateway.outcomes().slice(3), ['hit', 'hit', 'miss']);
});

test('the end of a pool key leaves what is shared', async () => {
  const gateway = anyServer('public');
  await gateway.list({ token: 'A' });
  gateway.changed('alpha', { reason: 'closed', poolKey: poolKey('alpha', callerOf('A').tokenHash) });
  gateway.changed('alpha', { reason: 'closed', poolKey: 'alpha' });
  await gateway.list({ token: 'A' });
  assert.equal(gateway.wire.length, 1);
});

test('a purge is an event that counts the answers it forgot; one that forgot nothing is none', async () => {
  const gateway = anyServer();
  gateway.changed();
  for (const token of ['A', 'B']) await gateway.list({ token });
  gateway.changed('alpha', { reason: 'reinitialized' });
  gateway.changed('alpha', { reason: 'reinitialized' });
  assert.deepEqual(
    gateway.events.filter(({ type }) => type === 'cache_purged'),
    [{ type: 'cache_purged', serverId: 'alpha', reason: 'reinitialized', entries: 2 }],
  );
});

const changes: readonly [string, Partial<Change>][] = [
  ['list_changed', { reason: 'list_changed', kinds: ['tools'] }],
  ['a close', { reason: 'closed' }],
  ['the close of its own pool key', { reason: 'closed', poolKey: 'alpha' }],
  ['a new session', { reason: 'reinitialized' }],
];
for (const [name, change] of changes)
  test(`an answer that ${name} overtakes goes to whoever waits for it and is not kept`, async () => {
    const server = new HeldServer();
    const gateway = new Gateway(server.handler);
    const first = gateway.list();
    await settled();
    gateway.changed('alpha', change);
    server.release(tools(['old']));
    assert.deepEqual(namesOf(await first), ['old']);
    const second = gateway.list();
    await settled();
    server.release(tools(['new']));
    assert.deepEqual(namesOf(await second), ['new']);
    assert.deepEqual(namesOf(await gateway.list()), ['new']);
    assert.equal(gateway.wire.length, 2);
  });

test('a change in the same chunk as the answer, before or behind it, keeps the answer out', async () => {
  for (const before of [true, false]) {
    const server = new HeldServer();
    const gateway = new Gateway(server.handler);
    const first = gateway.list();
    await settled();
    if (before) gateway.changed();
    server.release(tools(['old']));
    if (!before) gateway.changed();
    assert.deepEqual(namesOf(await first), ['old']);
    void gateway.list();
    await settled();
    assert.equal(gateway.wire.length, 2);
  }
});

test('a listing that comes after a change does not share a fetch from before it', async () => {
  const server = new HeldServer();
  const gateway = new Gateway(server.handler);
  const before = gateway.list();
  gateway.changed();
  const after = gateway.list();
  await settled();
  server.release(tools(['new']), 1);
  assert.deepEqual(namesOf(await after), ['new']);
  server.release(tools(['old']));
  assert.deepEqual(namesOf(await before), ['old']);
  assert.deepEqual(namesOf(await gateway.list()), ['new']);
});

test('no instant between the arrival of an answer and its delivery lets a later listing have it', async () => {
  for (let turns = 0; turns < 12; turns++) {
    const server = new HeldServer();
    const gateway = new Gateway(server.handler);
    const before = gateway.list();
    server.release(tools(['old'], { ttlMs: 0 }));
    for (let i = 0; i < turns; i++) await Promise.resolve();
    gateway.changed();
    const after = gateway.list();
    await settled();
    assert.equal(gateway.wire.length, 2, `${turns} turns after the answer`);
    server.release(tools(['new']));
    assert.deepEqual([await before, await after].flatMap(namesOf), ['old', 'new']);
  }
});

test('a change of another server, kind, token or resource does not cost a fetch its entry', async () => {
  const server = new HeldServer();
  const gateway = new Gateway(server.handler);
  const listing = gateway.list({ token: 'A' });
  await settled();
  gateway.changed('beta');
  gateway.changed('alphaX');
  gateway.changed('alpha', { kinds: ['prompts', 'resources'] });
  gateway.changed('alpha', { poolKey: poolKey('alpha', callerOf('B').tokenHash) });
  gateway.changed('alpha', { poolKey: 'alpha' });
  gateway.changed('alpha', { reason: 'updated', kinds: ['resources'], uri: 'file:///a' });
  server.release(tools(['a']));
  await listing;
  await gateway.list({ token: 'A' });
  assert.equal(gateway.wire.length, 1);
});

test('an update of a resource that is being read keeps the answer out, one of another does not', async () => {
  const server = new HeldServer();
  const gateway = new Gateway(server.handler);
  const read = (uri: string) => gateway.list({ method: 'resources/read', params: JSON.stringify({ uri }) });
  const reads = Promise.all([read('file:///a'), read('file:///b')]);
  await settled();
  gateway.changed('alpha', { reason: 'updated', kinds: ['resources'], uri: 'file:///a' });
  for (const _ of [1, 2]) server.release('{"contents":[],"ttlMs":60000}');
  await reads;
  void read('file:///a');
  void read('file:///b');
  await settled();
  assert.equal(gateway.wire.length, 3);
});

test('a burst of changes with a listing after each costs few requests, the last one newer than all', async () => {
  const server = new HeldServer();
  const gateway = new Gateway(server.handler);
  const listings: Promise<string[]>[] = [];
  for (let i = 0; i < 200; i++) {
    gateway.changed();
    listings.push(gateway.list().then(namesOf));
    await settled();
  }
  assert.equal(gateway.wire.length, 2);
  for (let i = 0; i < 3; i++) {
    server.release(tools([`v${i}`]));
    await settled();
  }
  assert.deepEqual((await Promise.all(listings)).at(-1), ['v2']);
  assert.equal(gateway.wire.length, 3);
  assert.deepEqual(namesOf(await gateway.list()), ['v2']);
});

test('a server that announces a change after every answer is asked when an agent asks, and not else', async () => {
  const gateway = new Gateway(countingServer());
  for (let i = 0; i < 5; i++) {
    await gateway.list();
    gateway.changed();
    await settled();
  }
  assert.equal(gateway.wire.length, 5);
});

test('a purge costs what it removes: one that finds nothing does not look at the other entries', async () => {
  const gateway = anyServer();
  for (let i = 0; i < 2_000; i++)
    await gateway.send({ method: 'resources/read', params: JSON.stringify({ uri: `file:///${i}` }) });
  for (let i = 0; i < 20_000; i++) gateway.changed('alpha', { kinds: ['tools'] });
  await gateway.list({ method: 'resources/read', params: '{"uri":"file:///7"}' });
  assert.equal(gateway.wire.length, 2_000);
});

test('a call for a tool that the kept list shows, refused by the server, purges the list once a minute', async () => {
  for (const code of [-32_602, -32_601, -32_020]) {
    const gateway = new Gateway(async (exchange) =>
      exchange.message.method === 'tools/call'
        ? refusal(exchange, code)
        : answer(exchange, tools(['a', 'b'])),
    );
    const call = { method: 'tools/call', params: '{"arguments":{},"name":"b"}' };
    await gateway.list();
    assert.equal((await gateway.list(call))['code'], code);
    await gateway.list();
    assert.deepEqual(gateway.outcomes(), ['miss', 'miss']);
    assert.deepEqual(gateway.published, [
      { serverId: 'alpha', reason: 'contradicted', kinds: ['tools'], poolKey: 'alpha' },
    ]);
    gateway.clock.advance(59_999);
    await gateway.list({ fresh: true });
    await gateway.list(call);
    assert.equal(gateway.published.length, 1);
    gateway.clock.advance(1);
    await gateway.list(call);
    assert.equal(gateway.published.length, 2);
  }
});

test('a contradicted list that is shared is purged for everybody, a private one for its owner', async () => {
  for (const cacheScope of ['public', 'private']) {
    const gateway = new Gateway(
      async (exchange) =>
        exchange.message.method === 'tools/call'
          ? refusal(exchange, -32_602)
          : answer(exchange, tools(['a'], { cacheScope })),
      { sharePublic: () => true },
    );
    for (const token of ['A', 'B']) await gateway.list({ token });
    await gateway.list({ method: 'tools/call', params: '{"name":"a"}', token: 'A' });
    gateway.wire.length = 0;
    await gateway.list({ token: 'B' });
    assert.equal(gateway.wire.length, cacheScope === 'public' ? 1 : 0);
    await gateway.list({ token: 'A' });
    assert.equal(gateway.wire.length, 1);
  }
});

test('a tool on a later page contradicts too', async () => {
  const gateway = new Gateway(async (exchange) => {
    if (exchange.message.method === 'tools/call') return refusal(exchange, -32_602);
    const last = exchange.message.bytes.includes('cursor');
    return answer(exchange, last ? tools(['b']) : tools(['a'], { nextCursor: '2' }));
  });
  await gateway.list();
  await gateway.list({ params: '{"cursor":"2"}' });
  await gateway.list({ method: 'tools/call', params: '{"name":"b"}' });
  assert.equal(gateway.published.length, 1);
});

const harmless: readonly [string, string, number][] = [
  ['a tool that no list shows', '{"name":"zzz"}', -32_602],
  ['another failure', '{"name":"a"}', -32_603],
  ['a call without a name', '{}', -32_602],
  ['a name that is no text', '{"name":{"name":"a"}}', -32_602],
  ['a name given twice', '{"name":"a","name":"a"}', -32_602],
  ['no params', '', -32_602],
];
for (const [name, params, code] of harmless)
  test(`${name} contradicts nothing`, async () => {
    const gateway = new Gateway(async (exchange) =>
      exchange.message.method === 'tools/call' ? refusal(exchange, code) : answer(exchange, tools(['a'])),
    );
    await gateway.list();
    assert.equal((await gateway.list({ method: 'tools/call', params }))['code'], code);
    await gateway.list();
    assert.deepEqual(gateway.published, []);
    assert.deepEqual(gateway.outcomes(), ['miss', 'hit']);
  });

test('a call is never answered from a list: a tool that none shows still reaches the server', async () => {
  const gateway = new Gateway(async (exchange) =>
    answer(exchange, exchange.message.method === 'tools/call' ? '{"content":[]}' : tools(['a'])),
  );
  await gateway.list();
  assert.deepEqual(await gateway.list({ method: 'tools/call', params: '{"name":"new"}' }), { content: [] });
});
