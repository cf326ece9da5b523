import assert from 'node:assert/strict';
import { test } from 'node:test';
import { benchOf, Held, namesOf, toolList } from '../support/manager-bench.js';
import { Refusal, type ServerHandler } from '../support/mcp-server.js';

/** Serves `pages` in order under cursors `1`, `2`, …; each page names its generation. */
function paged(pages: number, size: number, hints: (page: number) => object = () => ({})): ServerHandler {
  return ({ message }) => {
    const page = Number(message.params?.cursor ?? 0);
    const names = Array.from({ length: size }, (_, i) => `tool-${page * size + i}`);
    const next = page + 1 < pages ? { nextCursor: String(page + 1) } : {};
    return toolList(names, { ttlMs: 60_000, ...next, ...hints(page) });
  };
}

test('a list of many pages comes whole and in order', async (t) => {
  const { manager, server } = await benchOf(t, paged(3, 100));
  const names = namesOf(await manager.listTools('one'));
  assert.deepEqual(
    names,
    Array.from({ length: 300 }, (_, i) => `tool-${i}`),
  );
  assert.deepEqual(namesOf(await manager.listTools('one')), names);
  assert.equal(server.count('tools/list'), 3);
});

test('a page of very many items is no danger', async (t) => {
  const { manager } = await benchOf(t, paged(2, 150_000));
  assert.equal((await manager.listTools('one')).length, 300_000);
});

test('each page has its own clock', async (t) => {
  const { manager, clock, outcomes } = await benchOf(
    t,
    paged(3, 1, (page) => ({ ttlMs: page === 1 ? 10_000 : 60_000 })),
  );
  await manager.listTools('one');
  clock.advance(10_000);
  await manager.listTools('one');
  assert.deepEqual(outcomes().slice(3), ['hit', 'miss', 'hit']);
});

test('an empty cursor is a cursor, null and none are the end', async (t) => {
  const asked: unknown[] = [];
  const { manager } = await benchOf(t, ({ message }) => {
    asked.push(message.params?.cursor);
    return asked.length === 1 ? toolList(['a'], { nextCursor: '' }) : toolList(['b'], { nextCursor: null });
  });
  assert.deepEqual(namesOf(await manager.listTools('one')), ['a', 'b']);
  assert.deepEqual(asked, [undefined, '']);
});

for (const [what, cursors] of [
  ['one cursor', ['x']],
  ['two cursors in turn', ['x', 'y']],
] as const)
  test(`a server that repeats ${what} for ever gets an end, and a warning`, async (t) => {
    let pages = 0;
    const { manager, events } = await benchOf(t, () =>
      toolList([`t${pages}`], { nextCursor: cursors[pages++ % cursors.length] }),
    );
    assert.equal((await manager.listTools('one')).length, cursors.length + 1);
    const warning = events.all.find(({ type }) => type === 'warning');
    assert.match(JSON.stringify(warning), /"one".*repeats a cursor.*cut after/);
  });

test('a server with ever new cursors gets an end, and a warning', async (t) => {
  let pages = 0;
  const { manager, events, server } = await benchOf(t, () => toolList([], { nextCursor: `${pages++}` }));
  await manager.listTools('one');
  assert.equal(server.count('tools/list'), 1_000);
  const warning = events.all.find(({ type }) => type === 'warning');
  assert.match(JSON.stringify(warning), /more than 1000 pages/);
});

test('a server that takes too long over its pages gets an end, and a warning', async (t) => {
  const held = new Held<string>();
  const { manager, events, clock } = await benchOf(t, held.next);
  const listing = manager.listTools('one');
  await held.answer(toolList(['a'], { nextCursor: '1' }));
  await held.received(2);
  clock.advance(60_000);
  await held.answer(toolList(['b'], { nextCursor: '2' }));
  assert.deepEqual(namesOf(await listing), ['a', 'b']);
  assert.match(JSON.stringify(events.all), /takes too long over its pages/);
});

test('a refused cursor drops every kept page, and the walk begins anew', async (t) => {
  let session = 'old';
  const { manager, clock, outcomes } = await benchOf(t, ({ message }) => {
    const cursor = message.params?.cursor as string | undefined;
    if (cursor !== undefined && !cursor.startsWith(session)) throw new Refusal(-32602, 'Invalid cursor');
    const page = cursor === undefined ? 0 : Number(cursor.split(' ')[1]);
    const next = page < 2 ? { nextCursor: `${session} ${page + 1}` } : {};
    return toolList([`${session}-${page}`], { ttlMs: page === 1 ? 1_000 : 60_000, ...next });
  });
  await manager.listTools('one');
  session = 'new';
  clock.advance(1_000);
  assert.deepEqual(namesOf(await manager.listTools('one')), ['new-0', 'new-1', 'new-2']);
  assert.deepEqual(outcomes().slice(3), ['hit', 'miss', 'miss', 'miss', 'miss']);
});

test('a server that refuses its own new cursor is an error, not a loop', async (t) => {
  const { manager, server } = await benchOf(t, ({ message }) => {
    if (message.params?.cursor !== undefined) throw new Refusal(-32602, 'Invalid cursor');
    return toolList(['a'], { nextCursor: 'no' });
  });
  await assert.rejects(manager.listTools('one'), { name: 'ServerError', code: -32602 });
  assert.equal(server.count('tools/list'), 4);
});

test('another error in mid-walk is thrown at once and leaves the pages that are kept', async (t) => {
  let broken = true;
  const { manager, server } = await benchOf(t, ({ message }) => {
    if (message.params?.cursor === undefined) return toolList(['a'], { nextCursor: '1', ttlMs: 60_000 });
    if (broken) throw new Refusal(-32603, 'Try again');
    return toolList(['b'], { ttlMs: 60_000 });
  });
  await assert.rejects(manager.listTools('one'), { name: 'ServerError', code: -32603 });
  broken = false;
  assert.deepEqual(namesOf(await manager.listTools('one')), ['a', 'b']);
  assert.equal(server.count('tools/list'), 3);
});

test('after a purge in mid-walk no later page of that walk is kept', async (t) => {
  let version = 1;
  const held = new Held<void>();
  const { manager, server, events, outcomes } = await benchOf(t, async ({ message }) => {
    const page = Number(message.params?.cursor ?? 0);
    if (page === 1 && version === 1) await held.next();
    return toolList([`v${version}-${page}`], page < 2 ? { nextCursor: String(page + 1) } : {});
  });
  const walk = manager.listTools('one');
  await held.received();
  await server.until(() => server.openStreams === 1);
  server.broadcast('notifications/tools/list_changed');
  await events.first(({ type }) => type === 'cache_purged');
  version = 2;
  await held.answer();
  await walk;
  assert.deepEqual(namesOf(await manager.listTools('one')), ['v2-0', 'v2-1', 'v2-2']);
  assert.deepEqual(outcomes().slice(3), ['miss', 'miss', 'miss']);
});
