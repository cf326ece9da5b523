import assert from 'node:assert/strict';
import { test } from 'node:test';
import { benchOf, namesOf, openManager, remote, serve, tokenOf, toolList } from '../support/manager-bench.js';
import type { ServerHandler } from '../support/mcp-server.js';

/** A server whose list names the token it was asked with. */
function personal(hints: object): ServerHandler {
  return (call) => toolList([`of-${tokenOf(call) ?? 'nobody'}`], { ttlMs: 60_000, ...hints });
}

const PRIVATE = { cacheScope: 'private' };
const PUBLIC = { cacheScope: 'public' };

test('a private list is fetched for each token, and kept for it while others come between', async (t) => {
  const { manager, server, outcomes } = await benchOf(t, personal(PRIVATE));
  for (const token of ['A', 'B', 'B', 'A'])
    assert.deepEqual(namesOf(await manager.listTools('one', { token })), [`of-${token}`]);
  assert.equal(server.count('tools/list'), 2);
  assert.deepEqual(outcomes(), ['miss', 'miss', 'hit', 'hit']);
});

test('a rotated token is a miss and then a hit', async (t) => {
  const { manager, server } = await benchOf(t, personal(PRIVATE));
  let current = 'first';
  const token = () => current;
  for (let i = 0; i < 2; i++) await manager.listTools('one', { token });
  current = 'second';
  for (let i = 0; i < 2; i++)
    assert.deepEqual(namesOf(await manager.listTools('one', { token })), ['of-second']);
  assert.equal(server.count('tools/list'), 2);
});

for (const cacheScope of [undefined, 'org', 'PUBLIC', 1])
  test(`a scope of ${JSON.stringify(cacheScope)} is private`, async (t) => {
    const { manager, server } = await benchOf(t, personal({ cacheScope }), { entry: { sharePublic: true } });
    for (const token of ['A', 'B']) await manager.listTools('one', { token });
    assert.equal(server.count('tools/list'), 2);
  });

test('a public list is shared among tokens where the operator lets the server share', async (t) => {
  const { manager, server } = await benchOf(t, personal(PUBLIC), { entry: { sharePublic: true } });
  for (const token of ['A', 'B', undefined])
    assert.deepEqual(namesOf(await manager.listTools('one', { token })), ['of-A']);
  assert.equal(server.count('tools/list'), 1);
});

test('a public list that was fetched without a credential is shared by itself', async (t) => {
  const { manager, server } = await benchOf(t, personal(PUBLIC));
  for (const token of [undefined, 'A', 'B']) await manager.listTools('one', { token });
  assert.equal(server.count('tools/list'), 1);
});

test('a server that calls a list of one caller public gives it to nobody else', async (t) => {
  const { manager } = await benchOf(t, personal({ ...PUBLIC, ttlMs: 1e20 }));
  for (const token of ['A', 'B', undefined])
    assert.deepEqual(namesOf(await manager.listTools('one', { token })), [`of-${token ?? 'nobody'}`]);
});

test('a server that must not share does not even share what it fetched for nobody', async (t) => {
  const { manager, server } = await benchOf(t, personal(PUBLIC), { entry: { sharePublic: false } });
  for (const token of [undefined, 'A', undefined]) await manager.listTools('one', { token });
  assert.equal(server.count('tools/list'), 2);
});

test('a private list fetched without a token never reaches one who has a token, nor the reverse', async (t) => {
  const { manager, server } = await benchOf(t, personal(PRIVATE));
  for (const token of [undefined, 'A', undefined, 'A', ''])
    assert.deepEqual(namesOf(await manager.listTools('one', { token })), [`of-${token || 'nobody'}`]);
  assert.equal(server.count('tools/list'), 2);
});

test('a token source that fails counts as no token: no private list of others is served', async (t) => {
  const { manager, events } = await benchOf(t, personal(PRIVATE));
  await manager.listTools('one', { token: 'A' });
  const sources = [
    () => {
      throw new Error('secret-in-an-error');
    },
    () => Promise.reject(new Error('secret-in-an-error')),
    () => undefined,
    async () => '',
    (() => 7) as unknown as () => string,
  ];
  for (const token of sources)
    assert.deepEqual(namesOf(await manager.listTools('one', { token })), ['of-nobody']);
  const warnings = events.all.filter(({ type }) => type === 'warning');
  assert.equal(warnings.length, 2);
  assert.doesNotMatch(JSON.stringify(warnings), /secret-in-an-error/);
});

test('what a caller may see decides a call for that caller alone, whatever another one listed', async (t) => {
  const called: (string | undefined)[] = [];
  const { manager } = await benchOf(t, personal(PRIVATE), {
    server: {
      on: {
        'tools/call': (call) => {
          called.push(tokenOf(call));
          return '{"content":[]}';
        },
      },
    },
  });
  await manager.listTools('one', { token: 'admin' });
  await manager.callTool('one', 'of-admin', {}, { token: 'B' });
  assert.deepEqual(called, ['B']);
});

test('two servers that call themselves the same, at the same address, share nothing', async (t) => {
  let listings = 0;
  const server = await serve(t, {
    on: { 'tools/list': () => toolList([`listing-${++listings}`], { ttlMs: 60_000, ...PUBLIC }) },
  });
  const { manager } = openManager(t, { one: remote(server.url), two: remote(server.url) });
  for (let i = 0; i < 2; i++) {
    assert.deepEqual(namesOf(await manager.listTools('one')), ['listing-1']);
    assert.deepEqual(namesOf(await manager.listTools('two')), ['listing-2']);
  }
});

test('a fresh answer whose scope has changed ends the older one in both places', async (t) => {
  let hints: object = PUBLIC;
  let version = 1;
  const list: ServerHandler = () => toolList([`v${version}`], { ttlMs: 60_000, ...hints });
  const { manager } = await benchOf(t, list, { entry: { sharePublic: true } });
  const seenBy = async (token: string) => namesOf(await manager.listTools('one', { token }));
  assert.deepEqual(await seenBy('A'), ['v1']);
  hints = PRIVATE;
  version = 2;
  await manager.listTools('one', { token: 'A', fresh: true });
  assert.deepEqual([await seenBy('A'), await seenBy('B')], [['v2'], ['v2']]);
  hints = PUBLIC;
  version = 3;
  await manager.listTools('one', { token: 'A', fresh: true });
  assert.deepEqual([await seenBy('A'), await seenBy('B')], [['v3'], ['v3']]);
});

test('a fresh answer with TTL 0 ends the older one in both places', async (t) => {
  for (const scope of [PUBLIC, PRIVATE]) {
    let ttlMs = 60_000;
    let version = 1;
    const list: ServerHandler = () => toolList([`v${version}`], { ...scope, ttlMs });
    const { manager } = await benchOf(t, list, { entry: { sharePublic: true } });
    await manager.listTools('one', { token: 'A' });
    ttlMs = 0;
    await manager.listTools('one', { token: 'A', fresh: true });
    version = 2;
    assert.deepEqual(namesOf(await manager.listTools('one', { token: 'A' })), ['v2']);
  }
});

test('a fresh listing asks the server and renews what is kept', async (t) => {
  let version = 1;
  const { manager, server, outcomes } = await benchOf(t, () => toolList([`v${version}`], { ttlMs: 60_000 }));
  await manager.listTools('one');
  version = 2;
  assert.deepEqual(namesOf(await manager.listTools('one', { fresh: true })), ['v2']);
  assert.deepEqual(namesOf(await manager.listTools('one')), ['v2']);
  assert.equal(server.count('tools/list'), 2);
  assert.deepEqual(outcomes(), ['miss', 'fresh', 'hit']);
});
