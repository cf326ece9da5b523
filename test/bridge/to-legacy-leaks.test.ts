import assert from 'node:assert/strict';
import { test } from 'node:test';
import { queryObjects } from 'node:v8';
import { BridgedCall } from '../../src/bridge/bridged-call.js';
import { PseudoAgent } from '../../src/bridge/pseudo-agents.js';
import { ModernExchange } from '../../src/downstream/modern-exchange.js';
import type { GatewayEvent } from '../../src/pipeline/events.js';
import type { Wire } from '../support/mcp-server.js';
import {
  ADA,
  askForm,
  broughtFor,
  type ModernOnLegacy,
  modernOnLegacy,
  told,
} from '../support/modern-on-legacy.js';

const PARK_MS = 60_000;
const SESSION_IDLE_MS = 4_000_000;
const PATIENCE = { timeout: 60_000 };

/** Objects of a class that something still holds. */
function alive(kind: abstract new (...args: never) => unknown): number {
  return queryObjects(kind, { format: 'count' });
}

function count(bench: ModernOnLegacy, type: GatewayEvent['type']): number {
  return bench.gateway.events.all.filter((event) => event.type === type).length;
}

function cancelled(bench: ModernOnLegacy): number {
  return bench.server.notifications.filter(({ method }) => method === 'notifications/cancelled').length;
}

async function inParallel(times: number, width: number, work: () => Promise<unknown>): Promise<void> {
  let begun = 0;
  const worker = async () => {
    while (begun++ < times) await work();
  };
  await Promise.all(Array.from({ length: width }, worker));
}

test('thousands of calls that are asked and given up leave nothing behind', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t, {
    settings: { maxParkedCalls: 100_000, parkMs: PARK_MS, sessionIdleMs: SESSION_IDLE_MS },
  });
  await bench.retry(await bench.call(), [ADA]);
  const before = { timers: bench.clock.delays.length, agents: alive(PseudoAgent) };
  for (let round = 1; round <= 3; round++) {
    await inParallel(500, 100, () => bench.call());
    assert.equal(count(bench, 'call_parked'), 1 + round * 500);
    bench.clock.advance(PARK_MS);
    await bench.server.until(() => cancelled(bench) === round * 500);
  }
  assert.equal(count(bench, 'call_expired'), 1_500);
  bench.server.on['tools/call'] = async (call) => {
    await askForm(call);
    call.notify('notifications/vendor');
    return new Promise((resolve) => call.gone.addEventListener('abort', () => resolve(told('gone'))));
  };
  await inParallel(500, 50, async () => {
    const asked: Wire = await bench.call();
    const params = { name: 'ask', arguments: {}, ...broughtFor(asked, [ADA]) };
    const answer = await bench.post('tools/call', params);
    await answer.message();
    answer.drop();
  });
  await bench.server.until(() => cancelled(bench) === 2_000);
  // The last requests are still being ended. A leak never ends.
  while (bench.clock.delays.length > before.timers) await new Promise(setImmediate);
  assert.deepEqual([alive(BridgedCall), alive(ModernExchange), alive(PseudoAgent)], [0, 0, before.agents]);
});

/** In steps, so that what happens at the end of one has time left to end a session. */
function letIdle({ clock }: ModernOnLegacy): void {
  for (let step = 1; step <= 5; step++) clock.advance(SESSION_IDLE_MS / 4);
}

test('an agent that is idle for long is forgotten, and with it its session', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t, {
    entry: { isolate: 'session' },
    settings: { parkMs: 2 * SESSION_IDLE_MS, sessionIdleMs: SESSION_IDLE_MS },
  });
  const asked = await bench.call({ token: 'A' });
  await bench.retry(await bench.call({ token: 'B' }), [ADA], { token: 'B' });
  const agents = alive(PseudoAgent);
  letIdle(bench);
  // The one whose call waits stays.
  await bench.server.until(() => bench.server.deleted === 1);
  assert.equal(alive(PseudoAgent), agents - 1);
  await bench.retry(asked, [ADA], { token: 'A' });
  letIdle(bench);
  await bench.server.until(() => bench.server.deleted === 2);
  assert.equal(alive(PseudoAgent), agents - 2);
});

test('of too many agents the one that was idle the longest is forgotten', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t, {
    entry: { isolate: 'session' },
    settings: { maxSessions: 2 },
    on: { 'prompts/list': () => '{"prompts":[]}' },
  });
  const asked = await bench.call({ token: 'A' });
  for (const token of ['B', 'C', 'D']) await bench.send('prompts/list', {}, { token });
  await bench.server.until(() => bench.server.deleted === 2);
  assert.equal(bench.server.openSessions, 2);
  assert.equal((await bench.retry(asked, [ADA], { token: 'A' })).result.resultType, 'complete');
});
