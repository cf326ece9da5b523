import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { ChildServer, caller, exchange, localAgent, openCore, passUntil } from '../support/pool-bench.js';

/** Delays that are no pause between attempts: those in which a child may end. */
const ENDINGS = [20, 1_000, 2_000, 3_000];

/** A core with one agent that listens to a child which is down. */
async function listeningToNobody(t: TestContext, random = () => 0.4) {
  const child = new ChildServer(t);
  const bench = openCore(t, { one: child.entry() }, { random });
  const agent = localAgent('listening', '{}', true);
  await bench.core.handle(exchange(agent, caller(), 'tools/list'));
  bench.core.pool.listen('one', agent, caller());
  writeFileSync(child.path('down'), '');
  process.kill(child.pids()[0] as number, 'SIGKILL');
  await bench.happened('server_disconnected');
  /** Waits until the next attempt is due, lets it be made, and resolves to how long the pause was. */
  const pause = async () => {
    const { events, clock } = bench;
    const before = events.all.length;
    const delayMs = await clock.armed((armed) => armed < 60_000 && !ENDINGS.includes(armed));
    clock.advance(delayMs);
    await events.first(
      (event) =>
        events.all.indexOf(event) >= before &&
        (event.type === 'server_connect_failed' || event.type === 'server_disconnected'),
    );
    return delayMs;
  };
  return { child, agent, pause, ...bench };
}

test('a server that agents listen to is tried again at growing intervals, until it is back', async (t) => {
  const { child, clock, pause, of } = await listeningToNobody(t);
  const pauses: number[] = [];
  for (let tries = 0; tries < 7; tries++) pauses.push(await pause());
  assert.deepEqual(pauses, [700, 1_400, 2_800, 5_600, 11_200, 21_000, 21_000]);
  rmSync(child.path('down'));
  await passUntil(clock, () => of('server_connected').length === 2);
});

for (const [chance, delayMs] of [
  [0, 500],
  [0.5, 750],
  [0.9, 950],
] as const)
  test(`the interval is spread by chance, by half of its length at most (${chance})`, async (t) => {
    const { pause } = await listeningToNobody(t, () => chance);
    assert.equal(await pause(), delayMs);
  });

test('a child that breaks as soon as it is there is started ever more rarely', async (t) => {
  const { child, pause } = await listeningToNobody(t);
  rmSync(child.path('down'));
  writeFileSync(child.path('fragile'), '');
  const pauses: number[] = [];
  for (let tries = 0; tries < 5; tries++) pauses.push(await pause());
  assert.deepEqual(pauses, [700, 1_400, 2_800, 5_600, 11_200]);
  assert.equal(child.count('start'), 6);
});

test('after a connection that proved good the intervals begin anew', async (t) => {
  const { child, core, clock, agent, pause, happened } = await listeningToNobody(t);
  for (let tries = 0; tries < 4; tries++) await pause();
  rmSync(child.path('down'));
  clock.advance(5_000);
  await core.handle(exchange(agent, caller(), 'ping'));
  process.kill(child.pids().at(-1) as number, 'SIGKILL');
  await happened('server_disconnected', 2);
  writeFileSync(child.path('down'), '');
  assert.equal(await pause(), 700);
});

for (const what of ['closed', 'abandoned'])
  test(`a server that was ${what} while it was to be tried again is left alone`, async (t) => {
    const { child, core, agent, clock } = await listeningToNobody(t);
    await clock.armed((delayMs) => delayMs === 700);
    if (what === 'closed') await core.pool.close('one');
    else core.pool.leave(agent);
    assert.ok(!clock.delays.includes(700));
    rmSync(child.path('down'));
    for (let seconds = 0; seconds < 120; seconds++) {
      clock.advance(1_000);
      await new Promise(setImmediate);
    }
    assert.equal(child.count('start'), 1);
    assert.equal(core.pool.keys, 0);
    assert.deepEqual(clock.delays, []);
  });
