import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { variantOf, walkKey } from '../../src/cache/list-key.js';
import { cacheableMethod } from '../../src/protocol/methods.js';
import { exchangeOf, Gateway, HeldServer, namesOf, settled, tools } from './gateway.js';

const TOKENS = [undefined, 'A', 'B', 'C'] as const;

/** `settle` lets the pipeline rest after the step; without it the next one comes in the same chunk. */
type Step = { readonly settle: boolean } & Action;

type Action =
  | { readonly do: 'list'; readonly token: (typeof TOKENS)[number]; readonly fresh: boolean }
  | { readonly do: 'cancel'; readonly which: number }
  | { readonly do: 'answer'; readonly which: number }
  | { readonly do: 'change' }
  | { readonly do: 'doubt' }
  | { readonly do: 'wait'; readonly ms: number };

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('list' as const),
      token: fc.constantFrom(...TOKENS),
      fresh: fc.boolean(),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('answer' as const), which: fc.nat(9) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('change' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), which: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('doubt' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(50_000) }) },
);

const step: fc.Arbitrary<Step> = fc
  .tuple(action, fc.boolean())
  .map(([does, settle]) => ({ ...does, settle }));

/**
 * A server whose list has a version, and which answers with the version of the moment it was asked; the test decides
 * when an answer comes in. Each answer names the version, the token that asked, and the scope claimed.
 */
class VersionedServer {
  version = 1;
  readonly server = new HeldServer();
  readonly #versions = new WeakMap<object, number>();
  readonly #scope: (version: number) => string;
  readonly gateway: Gateway;

  constructor(scope: (version: number) => string, sharePublic: boolean | undefined) {
    this.#scope = scope;
    this.gateway = new Gateway(
      (exchange) => {
        this.#versions.set(exchange, this.version);
        return this.server.handler(exchange);
      },
      { sharePublic: () => sharePublic },
    );
  }

  answer(which: number): void {
    const { held } = this.server;
    if (held.length === 0) return;
    const at = which % held.length;
    const exchange = held[at]?.exchange;
    const version = exchange ? (this.#versions.get(exchange) ?? 0) : 0;
    const cacheScope = this.#scope(version);
    const name = `${version} ${exchange?.caller.token ?? '-'} ${cacheScope}`;
    this.server.release(tools([name], { cacheScope, ttlMs: 30_000 }), at);
  }
}

interface Seen {
  readonly token: string | undefined;
  /** The server's version when the listing came. */
  readonly since: number;
  readonly names: string[];
}

/** Plays the steps, then answers everything; gives back what every listing that was not cancelled got. */
async function play(world: VersionedServer, steps: readonly Step[]): Promise<Seen[]> {
  const seen: Seen[] = [];
  const waiting: { cancel: AbortController; done: Promise<void> }[] = [];
  for (const action of steps) {
    if (action.do === 'list') {
      const cancel = new AbortController();
      const since = world.version;
      const { token, fresh } = action;
      const done = world.gateway.list({ token, fresh, signal: cancel.signal }).then(
        (result) => void seen.push({ token, since, names: namesOf(result) }),
        (failure) => assert.equal(failure.code, 'cancelled'),
      );
      waiting.push({ cancel, done });
    } else if (action.do === 'answer') world.answer(action.which);
    else if (action.do === 'cancel') waiting[action.which]?.cancel.abort();
    else if (action.do === 'doubt') world.gateway.doubts.doubt('alpha');
    else if (action.do === 'wait') world.gateway.clock.advance(action.ms);
    else {
      world.version++;
      world.gateway.changed();
    }
    if (action.settle) await settled();
  }
  await settled();
  while (world.server.held.length > 0) {
    world.answer(0);
    await settled();
  }
  await Promise.all(waiting.map(({ done }) => done));
  return seen;
}

const steps = fc.array(step, { minLength: 5, maxLength: 40 });
const share = fc.constantFrom(true, undefined, false);

test('a purge at any instant of a fetch never leaves the old list to a later listing', async () => {
  await fc.assert(
    fc.asyncProperty(steps, share, async (script, sharePublic) => {
      const world = new VersionedServer((version) => (version % 3 === 0 ? 'private' : 'public'), sharePublic);
      const seen = await play(world, script);
      for (const { token, since, names } of [...seen, ...(await askAll(world))])
        assert.ok(Number(names[0]?.split(' ')[0]) >= since, `${token}: ${names} for a listing at ${since}`);
    }),
    { numRuns: 250 },
  );
});

test('partitions never mix, whatever tokens, scopes and rotations come in between', async () => {
  await fc.assert(
    fc.asyncProperty(steps, share, async (script, sharePublic) => {
      const world = new VersionedServer((version) => (version % 2 === 0 ? 'private' : 'public'), sharePublic);
      const seen = await play(world, script);
      for (const { token, names } of [...seen, ...(await askAll(world))]) {
        const [, asker, scope] = names[0]?.split(' ') ?? [];
        const shareable = scope === 'public' && (sharePublic ?? asker === '-');
        assert.ok(shareable || asker === (token ?? '-'), `${token} was given ${names}`);
      }
    }),
    { numRuns: 250 },
  );
});

/** One more listing of every token, at the end of a script. */
async function askAll(world: VersionedServer): Promise<Seen[]> {
  return play(
    world,
    TOKENS.map((token) => ({ do: 'list', token, fresh: false, settle: true })),
  );
}

test('two listings share a key only if nothing that changes the result differs', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 4 }),
    fc.constantFrom('', '=', '\n', ' ', '#', '1', '=1'),
  );
  const line = fc.constantFrom('alpha', 'alpha ', 'a', '1', '1 a', '=', '{}', '{"a":1}', 'alpha#');
  const listing = fc.record({
    method: fc.constantFrom('tools/list', 'prompts/list', 'resources/list'),
    serverId: line,
    fingerprint: line,
    place: text,
    cursor: fc.option(text, { nil: undefined }),
  });
  const keyOf = ({
    place,
    cursor,
    ...ask
  }: {
    place: string;
    cursor: string | undefined;
    method: string;
    serverId: string;
    fingerprint: string;
  }) => {
    const exchange = exchangeOf({ ...ask, params: JSON.stringify({ cursor }) });
    const method = cacheableMethod(ask.method);
    assert.ok(method);
    const variant = variantOf(exchange.message, method);
    assert.ok(variant !== undefined);
    return walkKey(exchange, ask.method, place) + variant;
  };
  fc.assert(
    fc.property(listing, listing, (a, b) => {
      assert.equal(keyOf(a) === keyOf(b), JSON.stringify(a) === JSON.stringify(b));
    }),
    { numRuns: 3_000 },
  );
});
