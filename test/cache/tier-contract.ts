import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Entry, Store } from '../../src/cache/store.js';
import type { ListKind } from '../../src/protocol/methods.js';
import { readMessage } from '../../src/wire/message.js';

/** An entry of `alpha`'s tools in the partition `alpha`, unless said otherwise. */
export function entryOf(given: Partial<Entry> & { readonly variant?: string } = {}): Entry {
  const { variant = '', ...members } = given;
  const { serverId = 'alpha', kind = 'tools', place = serverId } = members;
  const walk = members.walk ?? `${serverId} ${kind} ${place}`;
  return {
    serverId,
    kind,
    place,
    walk,
    uri: undefined,
    key: walk + variant,
    message: readMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}')),
    receivedAt: 1_000,
    freshUntil: 2_000,
    doubts: 0,
    ...members,
  };
}

/** What every tier must do. Results are awaited, so that a tier behind a network can be held to it too. */
export function describeTier(name: string, make: () => Store): void {
  describe(`${name} as a tier`, () => {
    test('gives back what was committed, byte for byte and instant for instant', async () => {
      const store = make();
      const entry = entryOf();
      await store.commit(entry);
      const found = await store.lookup(entry.key);
      assert.deepEqual(found?.message?.bytes, entry.message?.bytes);
      assert.deepEqual({ ...found, message: undefined }, { ...entry, message: undefined });
    });

    test('knows nothing of keys that were never committed', async () => {
      const store = make();
      await store.commit(entryOf());
      assert.equal(await store.lookup('another'), undefined);
      await store.remove('another');
      assert.ok(await store.lookup(entryOf().key));
    });

    test('keeps the newer of two entries under one key, and finds it by its own subject', async () => {
      const store = make();
      await store.commit(entryOf({ key: 'k', kind: 'tools', receivedAt: 1 }));
      await store.commit(entryOf({ key: 'k', kind: 'prompts', receivedAt: 2 }));
      assert.equal((await store.lookup('k'))?.receivedAt, 2);
      assert.equal(await store.forget(byKind('alpha', ['tools'])), 0);
      assert.equal(await store.forget(byKind('alpha', ['prompts'])), 1);
    });

    test('keeps an expired entry: time is not its business', async () => {
      const store = make();
      await store.commit(entryOf({ receivedAt: 0, freshUntil: 0 }));
      assert.ok(await store.lookup(entryOf().key));
    });

    test('removes one entry by its key', async () => {
      const store = make();
      await store.commit(entryOf());
      await store.commit(entryOf({ variant: '=2' }));
      await store.remove(entryOf().key);
      assert.equal(await store.lookup(entryOf().key), undefined);
      assert.ok(await store.lookup(entryOf({ variant: '=2' }).key));
    });

    test('forgets the named kinds of one server, in every place', async () => {
      const store = make();
      const kept = [
        entryOf({ kind: 'prompts' }),
        entryOf({ serverId: 'alphaX' }),
        entryOf({ serverId: 'beta' }),
      ];
      const gone = [entryOf(), entryOf({ place: 'alpha#public' }), entryOf({ place: 'alpha#ab' })];
      for (const entry of [...kept, ...gone]) await store.commit(entry);
      assert.equal(await store.forget(byKind('alpha', ['tools'])), gone.length);
      for (const { key } of gone) assert.equal(await store.lookup(key), undefined, key);
      for (const { key } of kept) assert.ok(await store.lookup(key), key);
    });

    test('forgets all that it has of a server when no kind is named', async () => {
      const store = make();
      for (const kind of ['tools', 'prompts', 'resources', 'discovery'] as const)
        await store.commit(entryOf({ kind }));
      await store.commit(entryOf({ kind: 'resources', uri: 'file:///a', variant: '=file:///a' }));
      await store.commit(entryOf({ serverId: 'beta' }));
      assert.equal(await store.forget(byKind('alpha', [])), 5);
      assert.ok(await store.lookup(entryOf({ serverId: 'beta' }).key));
    });

    test('forgets one partition and what was appended to its name, and nothing shared', async () => {
      const store = make();
      const gone = [entryOf({ place: 'alpha#ab' }), entryOf({ place: 'alpha#ab#principal:bob' })];
      const kept = [entryOf(), entryOf({ place: 'alpha#abc' }), entryOf({ place: 'alpha#public' })];
      for (const entry of [...kept, ...gone]) await store.commit(entry);
      assert.equal(await store.forget({ ...byKind('alpha', []), poolKey: 'alpha#ab' }), gone.length);
      for (const { key } of kept) assert.ok(await store.lookup(key), key);
    });

    test('takes a server id given as a pool key for the partition of callers without a token', async () => {
      const store = make();
      const kept = [entryOf({ place: 'alpha#ab' }), entryOf({ place: 'alpha#public' })];
      for (const entry of [entryOf(), ...kept]) await store.commit(entry);
      assert.equal(await store.forget({ ...byKind('alpha', []), poolKey: 'alpha' }), 1);
      for (const { key } of kept) assert.ok(await store.lookup(key), key);
    });

    test('forgets what was read under one uri of one server', async () => {
      const store = make();
      const read = (uri: string, serverId = 'alpha') =>
        entryOf({ serverId, kind: 'resources', uri, variant: `=${uri}` });
      const kept = [read('file:///b'), read('file:///a', 'beta'), entryOf({ kind: 'resources' })];
      for (const entry of [read('file:///a'), ...kept]) await store.commit(entry);
      assert.equal(await store.forget({ by: 'uri', serverId: 'alpha', uri: 'file:///a' }), 1);
      for (const { key } of kept) assert.ok(await store.lookup(key), key);
    });

    test('selects and forgets the pages of one walk, counting answers and not reserved pages', async () => {
      const store = make();
      const { walk } = entryOf();
      const pages = [entryOf(), entryOf({ variant: '=2' }), entryOf({ variant: '=3', message: undefined })];
      for (const page of [...pages, entryOf({ place: 'alpha#ab' })]) await store.commit(page);
      const selection = { by: 'walk', serverId: 'alpha', kind: 'tools', walk } as const;
      const found = await store.select(selection);
      assert.deepEqual(found.map(({ key }) => key).sort(), pages.map(({ key }) => key).sort());
      assert.equal(await store.forget(selection), 2);
      assert.equal(await store.lookup(entryOf({ variant: '=3' }).key), undefined);
      assert.ok(await store.lookup(entryOf({ place: 'alpha#ab' }).key));
    });
  });
}

export function byKind(serverId: string, kinds: readonly ListKind[]) {
  return { by: 'kind', serverId, kinds, poolKey: undefined } as const;
}
