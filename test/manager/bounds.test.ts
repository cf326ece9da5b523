import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { benchOf, toolList } from '../support/manager-bench.js';

const TOKENS = 10_000;
const ENTRIES = 50;
const CONNECTIONS = 20;
/** Far below what one connection, one list or one agent takes. */
const BYTES_A_TOKEN = 250;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/**
 * Uses all tokens, a few at a time. Returns by how many bytes for each token the heap grew in the last four fifths, when
 * whatever has a bound has reached it; `forget` empties what the test itself keeps.
 */
async function growth(use: (token: string) => Promise<unknown>, forget: () => void): Promise<number> {
  let next = 0;
  const useUpTo = async (end: number) => {
    const worker = async () => {
      while (next < end) await use(tokenAt(next++));
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    forget();
  };
  await useUpTo(TOKENS / 5);
  const before = heapBytes();
  await useUpTo(TOKENS);
  return (heapBytes() - before) / (TOKENS * 0.8);
}

function tokenAt(index: number): string {
  return `token-${index}`;
}

test('ten thousand rotated tokens leave a bounded number of lists, connections and bytes', async (t) => {
  const bench = await benchOf(t, () => toolList(['a'], { ttlMs: 600_000 }), {
    settings: { cacheMaxEntries: ENTRIES, maxConnections: CONNECTIONS },
    server: { sessions: false, stream: false },
  });
  const { manager, server, events, outcomes } = bench;
  const grown = await growth(
    (token) => manager.listTools('one', { token }),
    () => {
      for (const kept of [events.all, server.initialized, server.notifications]) kept.length = 0;
    },
  );
  assert.ok(grown < BYTES_A_TOKEN, `${grown} bytes for each token`);
  assert.ok(manager.poolSize <= CONNECTIONS, `${manager.poolSize} connections`);
  for (let i = 1; i <= ENTRIES + 5; i++) await manager.listTools('one', { token: tokenAt(TOKENS - i) });
  assert.equal(outcomes().filter((outcome) => outcome === 'hit').length, ENTRIES);
});

test('lists make room by their bytes too, however few they are', async (t) => {
  const { manager, outcomes } = await benchOf(t, () => toolList(['x'.repeat(40_000)], { ttlMs: 600_000 }), {
    settings: { cacheMaxBytes: 100_000 },
  });
  for (const token of ['A', 'B', 'C', 'C', 'B', 'A']) await manager.listTools('one', { token });
  assert.deepEqual(outcomes(), ['miss', 'miss', 'miss', 'hit', 'hit', 'miss']);
});
