import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Retries } from '../../src/base/retries.js';
import { FakeClock } from '../support/fake-clock.js';

const BACKOFF = { baseMs: 1_000, maxMs: 8_000 };

/** The delay of the next attempt. */
function planned(retries: Retries, clock: FakeClock): number {
  retries.plan(() => {});
  assert.equal(clock.delays.length, 1);
  return clock.delays[0] as number;
}

function bench() {
  const clock = new FakeClock();
  return { clock, retries: new Retries(clock, () => 1, BACKOFF) };
}

test('attempts that fail are held apart twice as long each time, up to a limit', () => {
  const { clock, retries } = bench();
  const delays = [1, 2, 3, 4, 5].map(() => {
    retries.lost();
    return planned(retries, clock);
  });
  assert.deepEqual(delays, [1_000, 2_000, 4_000, 8_000, 8_000]);
});

test('what did its work or stood for long begins anew soon, and only once', () => {
  for (const good of ['proved', 'long'] as const) {
    const { clock, retries } = bench();
    for (let n = 0; n < 3; n++) planned(retries, clock);
    retries.stands();
    if (good === 'proved') retries.proved();
    else clock.advance(10_000);
    retries.lost();
    assert.equal(planned(retries, clock), 1_000, good);
    retries.lost();
    assert.equal(planned(retries, clock), 2_000, good);
  }
});

test('what stood for a moment only counts as a failure', () => {
  const { clock, retries } = bench();
  planned(retries, clock);
  retries.stands();
  clock.advance(9_999);
  retries.lost();
  assert.equal(planned(retries, clock), 2_000);
});

test('nothing is begun once it stands, or was cancelled', () => {
  const { clock, retries } = bench();
  let begun = 0;
  retries.plan(() => begun++);
  retries.stands();
  retries.plan(() => begun++);
  retries.cancel();
  clock.advance(100_000);
  assert.equal(begun, 0);
  assert.deepEqual(clock.delays, []);
});
