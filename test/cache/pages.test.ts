import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '../../src/wire/message.js';
import { answer, Gateway, HeldServer, namesOf, refusal, settled, tools } from './gateway.js';

/** A server of three pages, whose cursors belong to one generation of its list. */
class Pages {
  generation = 1;
  ttls = [60_000, 60_000, 60_000];
  readonly gateway = new Gateway(async (exchange) => this.#answer(exchange));

  #answer(exchange: Parameters<typeof answer>[0]): Message {
    const cursor = cursorOf(exchange.message);
    const page = cursor === undefined ? 0 : Number(cursor.split('.')[1]);
    if (cursor !== undefined && !cursor.startsWith(`${this.generation}.`)) return refusal(exchange, -32_602);
    const hints = {
      ttlMs: this.ttls[page],
      ...(page < 2 ? { nextCursor: `${this.generation}.${page + 1}` } : {}),
    };
    return answer(exchange, tools([`g${this.generation}p${page}`], hints));
  }

  page(cursor?: string): Promise<Record<string, unknown>> {
    return this.gateway.list(cursor === undefined ? {} : { params: JSON.stringify({ cursor }) });
  }

  async walk(): Promise<string[]> {
    const names: string[] = [];
    let cursor: unknown;
    do {
      const page = await this.page(cursor as string | undefined);
      names.push(...namesOf(page));
      cursor = page['nextCursor'];
    } while (cursor !== undefined);
    return names;
  }
}

function cursorOf({ bytes }: Message): string | undefined {
  return JSON.parse(bytes.toString('utf8')).params?.cursor;
}

test('a walk is kept page by page, each under its own cursor', async () => {
  const pages = new Pages();
  assert.deepEqual(await pages.walk(), ['g1p0', 'g1p1', 'g1p2']);
  assert.deepEqual(await pages.walk(), ['g1p0', 'g1p1', 'g1p2']);
  assert.equal(pages.gateway.wire.length, 3);
});

test('each page has its own clock', async () => {
  const pages = new Pages();
  pages.ttls = [10_000, 30_000, 20_000];
  await pages.walk();
  pages.gateway.clock.advance(10_000);
  await pages.walk();
  assert.equal(pages.gateway.wire.length, 4);
  pages.gateway.clock.advance(10_000);
  await pages.walk();
  assert.equal(pages.gateway.wire.length, 6);
});

test('a cursor is compared by its value, whatever its spelling', async () => {
  const gateway = new Gateway(async (exchange) =>
    answer(exchange, cursorOf(exchange.message) ? tools(['2']) : tools(['1'], { nextCursor: 'a/b' })),
  );
  await gateway.list();
  for (const cursor of ['"a/b"', '"a\\/b"', '"\\u0061/b"'])
    assert.deepEqual(namesOf(await gateway.list({ params: `{"cursor":${cursor}}` })), ['2']);
  assert.equal(gateway.wire.length, 2);
});

test('an empty cursor is a cursor: its page is not the first one', async () => {
  const gateway = new Gateway(async (exchange) => {
    const first = cursorOf(exchange.message) === undefined;
    return answer(exchange, first ? tools(['1'], { nextCursor: '' }) : tools(['2']));
  });
  for (const _ of [1, 2]) {
    assert.deepEqual(namesOf(await gateway.list()), ['1']);
    assert.deepEqual(namesOf(await gateway.list({ params: '{"cursor":""}' })), ['2']);
  }
  assert.equal(gateway.wire.length, 2);
});

for (const nextCursor of [null, 5, {}])
  test(`a nextCursor of ${JSON.stringify(nextCursor)} is the end and reserves nothing`, async () => {
    const gateway = new Gateway(async (exchange) => answer(exchange, tools(['1'], { nextCursor })));
    await gateway.list();
    for (const _ of [1, 2]) await gateway.list({ params: `{"cursor":"${nextCursor}"}` });
    assert.equal(gateway.wire.length, 3);
  });

test('a refused cursor drops every page, and the walk begins anew', async () => {
  const pages = new Pages();
  await pages.page();
  await pages.page('1.1');
  pages.generation = 2;
  assert.equal((await pages.page('1.2'))['code'], -32_602);
  assert.deepEqual(await pages.walk(), ['g2p0', 'g2p1', 'g2p2']);
});

test('a refused cursor drops shared pages too, and nothing of other lists, callers and servers', async () => {
  const gateway = new Gateway(
    async (exchange) => {
      if (cursorOf(exchange.message)) return refusal(exchange, -32_602);
      const shown = { tools: [], prompts: [], nextCursor: '2', cacheScope: 'public' };
      const own = { ...shown, cacheScope: 'private' };
      return answer(exchange, JSON.stringify(exchange.caller.token === 'P' ? own : shown));
    },
    { sharePublic: () => true },
  );
  const others = [{ method: 'prompts/list' }, { serverId: 'beta' }, { fingerprint: '{"x":1}' }];
  await gateway.list({ token: 'P' });
  for (const ask of others) await gateway.list(ask);
  await gateway.list();
  gateway.wire.length = 0;
  await gateway.list({ params: '{"cursor":"2"}' });
  for (const ask of others) await gateway.list(ask);
  assert.equal(gateway.wire.length, 1);
  await gateway.list();
  assert.equal(gateway.wire.length, 2);
});

test('an error other than that of a refused cursor drops nothing', async () => {
  const gateway = new Gateway(async (exchange) =>
    cursorOf(exchange.message)
      ? refusal(exchange, -32_603)
      : answer(exchange, tools(['1'], { nextCursor: '2' })),
  );
  await gateway.list();
  await gateway.list({ params: '{"cursor":"2"}' });
  await gateway.list();
  assert.equal(gateway.wire.length, 2);
});

test('after a purge in mid-walk no later page of that walk is kept', async () => {
  const pages = new Pages();
  await pages.page();
  await pages.page('1.1');
  pages.gateway.changed();
  await pages.page('1.2');
  await pages.page('1.2');
  await pages.page('1.1');
  await pages.page('1.1');
  assert.equal(pages.gateway.wire.length, 6);
});

test('a page of an old walk is not kept beside the first page of the next', async () => {
  const server = new HeldServer();
  const gateway = new Gateway(server.handler);
  const list = async (params: string, result: string): Promise<void> => {
    const listing = gateway.list({ params });
    await settled();
    server.release(result);
    await listing;
  };
  await list('', tools(['old 1'], { nextCursor: 'old-2' }));
  gateway.changed();
  await list('', tools(['new 1'], { nextCursor: 'new-2' }));
  await list('{"cursor":"old-2"}', tools(['old 2']));
  await list('{"cursor":"old-2"}', tools(['old 2']));
  await list('{"cursor":"new-2"}', tools(['new 2']));
  await gateway.list({ params: '{"cursor":"new-2"}' });
  assert.equal(gateway.wire.length, 5);
});

test('a purge while a later page is fetched keeps that page and the rest of the walk out', async () => {
  const server = new HeldServer();
  const gateway = new Gateway(server.handler);
  const first = gateway.list();
  server.release(tools(['1'], { nextCursor: '2' }));
  await first;
  const second = gateway.list({ params: '{"cursor":"2"}' });
  await settled();
  gateway.changed();
  server.release(tools(['2'], { nextCursor: '3' }));
  await second;
  for (const cursor of ['2', '3', '3']) {
    const listing = gateway.list({ params: JSON.stringify({ cursor }) });
    await settled();
    server.release(tools([cursor]));
    await listing;
  }
  assert.equal(gateway.wire.length, 5);
});

test('a page whose first page is not kept is not kept either', async () => {
  const pages = new Pages();
  pages.ttls = [0, 60_000, 60_000];
  await pages.walk();
  await pages.walk();
  assert.equal(pages.gateway.wire.length, 6);
});

test('a server that always names the same next cursor costs one entry for each, and no more', async () => {
  const gateway = new Gateway(async (exchange) => answer(exchange, tools(['x'], { nextCursor: 'again' })));
  await gateway.list();
  for (let i = 0; i < 100; i++) await gateway.list({ params: '{"cursor":"again"}' });
  assert.equal(gateway.wire.length, 2);
});

test('pages of a walk may differ in scope', async () => {
  const gateway = new Gateway(async (exchange) => {
    const first = cursorOf(exchange.message) === undefined;
    const cacheScope = first ? 'public' : 'private';
    return answer(exchange, tools([exchange.caller.token ?? '-'], { cacheScope, nextCursor: '2' }));
  });
  await gateway.list();
  for (const token of ['A', 'B', 'A', 'B'])
    assert.deepEqual(namesOf(await gateway.list({ token, params: '{"cursor":"2"}' })), [token]);
  assert.equal(gateway.wire.length, 3);
});
