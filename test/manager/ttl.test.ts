import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toolListTtlMs } from '../../src/index.js';
import { benchOf, Held, openManager, remote, serve, toolList } from '../support/manager-bench.js';

const MINUTE = 60_000;

test('two listings within the TTL that the server states cost one request and are equal', async (t) => {
  const { manager, server } = await benchOf(t, () => toolList(['b', 'a'], { ttlMs: MINUTE }));
  const first = await manager.listTools('one');
  assert.deepEqual(await manager.listTools('one'), first);
  assert.equal(server.count('tools/list'), 1);
});

test('a list without a TTL is kept for 60 s, and asked for again after them', async (t) => {
  const { manager, server, clock } = await benchOf(t, () => toolList(['a']));
  await manager.listTools('one');
  clock.advance(MINUTE - 1);
  await manager.listTools('one');
  assert.equal(server.count('tools/list'), 1);
  clock.advance(1);
  await manager.listTools('one');
  assert.equal(server.count('tools/list'), 2);
});

for (const toolListTtlMs of [0, -1])
  test(`with a default TTL of ${toolListTtlMs} a list without a TTL is asked for each time`, async (t) => {
    const { manager, server } = await benchOf(t, () => toolList(['a']), { settings: { toolListTtlMs } });
    for (let i = 0; i < 3; i++) await manager.listTools('one');
    assert.equal(server.count('tools/list'), 3);
  });

test('the variable of the TTL is read at each listing, so that a change needs no restart', async (t) => {
  const env: NodeJS.ProcessEnv = { SIDEGATE_TOOLLIST_TTL_MS: '0' };
  const { manager, server } = await benchOf(t, () => toolList(['a']), { env });
  for (let i = 0; i < 2; i++) await manager.listTools('one');
  assert.equal(server.count('tools/list'), 2);
  env['SIDEGATE_TOOLLIST_TTL_MS'] = '60000';
  for (let i = 0; i < 2; i++) await manager.listTools('one');
  assert.equal(server.count('tools/list'), 3);
  env['SIDEGATE_TOOLLIST_TTL_MS'] = '-5';
  for (let i = 0; i < 2; i++) await manager.listTools('one');
  assert.equal(server.count('tools/list'), 5);
});

for (const text of ['abc', '  ', 'Infinity'])
  test(`a TTL of ${JSON.stringify(text)} in the environment means 60 s, with one warning`, async (t) => {
    const env = { SIDEGATE_TOOLLIST_TTL_MS: text };
    const { manager, server, clock, events } = await benchOf(t, () => toolList(['a']), { env });
    for (let i = 0; i < 3; i++) await manager.listTools('one');
    clock.advance(MINUTE);
    await manager.listTools('one');
    assert.equal(server.count('tools/list'), 2);
    const warnings = events.all.filter(({ type }) => type === 'warning');
    assert.equal(warnings.length, 1);
    assert.match(JSON.stringify(warnings), /SIDEGATE_TOOLLIST_TTL_MS/);
  });

test('a server’s own default TTL beats the variable', async (t) => {
  const env = { SIDEGATE_TOOLLIST_TTL_MS: '0' };
  const { manager, server } = await benchOf(t, () => toolList(['a']), {
    env,
    entry: { toolListTtlMs: 1_000 },
  });
  for (let i = 0; i < 2; i++) await manager.listTools('one');
  assert.equal(server.count('tools/list'), 1);
});

for (const ttlMs of [0, -1])
  test(`a list that its server gives a TTL of ${ttlMs} is never kept, whatever the default`, async (t) => {
    const settings = { toolListTtlMs: MINUTE };
    const { manager, server } = await benchOf(t, () => toolList(['a'], { ttlMs }), { settings });
    for (let i = 0; i < 2; i++) await manager.listTools('one');
    assert.equal(server.count('tools/list'), 2);
  });

for (const [whose, hints, settings] of [
  ['the server', { ttlMs: 60 * MINUTE }, {}],
  ['the operator', {}, { toolListTtlMs: 60 * MINUTE }],
] as const)
  test(`an hour that ${whose} gives is clamped to 15 minutes`, async (t) => {
    const { manager, server, clock } = await benchOf(t, () => toolList(['a'], hints), { settings });
    await manager.listTools('one');
    clock.advance(15 * MINUTE - 1);
    await manager.listTools('one');
    assert.equal(server.count('tools/list'), 1);
    clock.advance(1);
    await manager.listTools('one');
    assert.equal(server.count('tools/list'), 2);
  });

test('the clamp can be set', async (t) => {
  const settings = { maxTtlMs: 1_000 };
  const { manager, server, clock } = await benchOf(t, () => toolList(['a'], { ttlMs: MINUTE }), { settings });
  await manager.listTools('one');
  clock.advance(1_000);
  await manager.listTools('one');
  assert.equal(server.count('tools/list'), 2);
});

for (const ttlMs of ['60000', null, {}])
  test(`a TTL of ${JSON.stringify(ttlMs)} counts as none, which is not the same as 0`, async (t) => {
    const { manager, server, clock } = await benchOf(t, () => toolList(['a'], { ttlMs }));
    for (let i = 0; i < 2; i++) await manager.listTools('one');
    assert.equal(server.count('tools/list'), 1);
    clock.advance(MINUTE);
    await manager.listTools('one');
    assert.equal(server.count('tools/list'), 2);
  });

test('a TTL begins when the answer arrives, not when it was asked for', async (t) => {
  const held = new Held<string>();
  const { manager, server, clock } = await benchOf(t, held.next);
  const listing = manager.listTools('one');
  await held.received();
  clock.advance(50_000);
  await held.answer(toolList(['a'], { ttlMs: MINUTE }));
  await listing;
  clock.advance(MINUTE - 1);
  await manager.listTools('one');
  assert.equal(server.count('tools/list'), 1);
  clock.advance(1);
  const again = manager.listTools('one');
  await held.answer(toolList(['a']));
  await again;
  assert.equal(server.count('tools/list'), 2);
});

test('the end of a TTL is no event: nothing waits for it and nothing is asked because of it', async (t) => {
  const { manager, server, clock, events } = await benchOf(t, () => toolList(['a'], { ttlMs: 1_234 }));
  await manager.listTools('one');
  assert.equal(clock.delays.filter((delayMs) => delayMs <= 1_234).length, 0, `timers of ${clock.delays} ms`);
  const before = events.all.length;
  clock.advance(60 * MINUTE);
  assert.equal(events.all.length, before);
  await manager.callTool('one', 'a').catch(() => {});
  assert.equal(server.count('tools/list'), 1);
});

test('prompts, resources, templates and discovery are kept by the same rules', async (t) => {
  const lists = {
    'prompts/list': 'prompts',
    'resources/list': 'resources',
    'resources/templates/list': 'resourceTemplates',
    'server/discover': 'supportedVersions',
  };
  const on = Object.fromEntries(
    Object.entries(lists).map(([method, member]) => [method, () => JSON.stringify({ [member]: [] })]),
  );
  const server = await serve(t, { on });
  const { manager, clock } = openManager(t, { one: remote(server.url, { era: 'legacy' }) });
  const askAll = async () => {
    await manager.listPrompts('one');
    await manager.listResources('one');
    await manager.listResourceTemplates('one');
    await manager.request('one', 'server/discover');
  };
  const counts = () => Object.keys(lists).map((method) => server.count(method));
  for (let i = 0; i < 2; i++) await askAll();
  assert.deepEqual(counts(), [1, 1, 1, 1]);
  clock.advance(MINUTE);
  await askAll();
  assert.deepEqual(counts(), [2, 2, 2, 2]);
});

test('a resource is kept only where the server states a TTL above 0', async (t) => {
  let hints: object = {};
  const read = () => JSON.stringify({ contents: [], ...hints });
  const server = await serve(t, { on: { 'resources/read': read } });
  const { manager } = openManager(t, { one: remote(server.url) });
  for (const [given, requests] of [
    [{}, 2],
    [{ ttlMs: 0 }, 4],
    [{ ttlMs: 1_000 }, 5],
  ] as const) {
    hints = given;
    for (let i = 0; i < 2; i++) await manager.request('one', 'resources/read', { uri: 'file:///a' });
    assert.equal(server.count('resources/read'), requests, JSON.stringify(given));
  }
});

test('how long a list is kept is a pure rule', () => {
  assert.equal(toolListTtlMs(5_000, MINUTE), 5_000);
  assert.equal(toolListTtlMs(undefined, MINUTE), MINUTE);
  assert.equal(toolListTtlMs('5000', MINUTE), MINUTE);
  assert.equal(toolListTtlMs(0, MINUTE), 0);
  assert.equal(toolListTtlMs(-1, MINUTE), 0);
  assert.equal(toolListTtlMs(undefined, -1), 0);
  assert.equal(toolListTtlMs(1e20, MINUTE), 15 * MINUTE);
});
