import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOTICE_WINDOW_MS, Notices, noticeDelayMs } from '../../src/upstream/notices.js';
import { FakeClock } from '../support/fake-clock.js';

test('a notice waits for the end of the window that the one before it began', () => {
  assert.equal(noticeDelayMs(undefined, 0), 0);
  assert.equal(noticeDelayMs(1_000, 1_000), NOTICE_WINDOW_MS);
  assert.equal(noticeDelayMs(1_000, 1_249), 1);
  assert.equal(noticeDelayMs(1_000, 1_250), 0);
  assert.equal(noticeDelayMs(1_000, 9_000), 0);
});

test('a clock that was set back delays a notice by no more than a window', () => {
  assert.equal(noticeDelayMs(1_000_000, 0), NOTICE_WINDOW_MS);
});

test('of a burst the first notice is told at once and the last when the window is over', () => {
  const clock = new FakeClock();
  const notices = new Notices(clock);
  const told: number[] = [];
  for (let n = 1; n <= 200; n++) notices.tell('tools', () => told.push(n));
  assert.deepEqual(told, [1]);
  clock.advance(NOTICE_WINDOW_MS - 1);
  assert.deepEqual(told, [1]);
  clock.advance(1);
  assert.deepEqual(told, [1, 200]);
  notices.tell('tools', () => told.push(201));
  assert.deepEqual(told, [1, 200]);
  clock.advance(NOTICE_WINDOW_MS);
  assert.deepEqual(told, [1, 200, 201]);
  assert.deepEqual(clock.delays, []);
});

test('kinds do not wait for each other', () => {
  const notices = new Notices(new FakeClock());
  const told: string[] = [];
  for (const kind of ['tools', 'prompts', 'tools']) notices.tell(kind, () => told.push(kind));
  assert.deepEqual(told, ['tools', 'prompts']);
});

test('what is flushed is told once, and begins a window', () => {
  const clock = new FakeClock();
  const notices = new Notices(clock);
  const told: number[] = [];
  for (const n of [1, 2]) notices.tell('tools', () => told.push(n));
  notices.flush();
  notices.flush();
  assert.deepEqual(told, [1, 2]);
  notices.tell('tools', () => told.push(3));
  clock.advance(NOTICE_WINDOW_MS - 1);
  assert.deepEqual(told, [1, 2]);
  clock.advance(1);
  assert.deepEqual(told, [1, 2, 3]);
});

test('nothing is told while paused, and what waits is told after it', () => {
  const clock = new FakeClock();
  const notices = new Notices(clock);
  const told: number[] = [];
  for (const n of [1, 2]) notices.tell('tools', () => told.push(n));
  notices.pause();
  assert.deepEqual(clock.delays, []);
  clock.advance(10_000);
  assert.deepEqual(told, [1]);
  notices.resume();
  clock.advance(0);
  assert.deepEqual(told, [1, 2]);
});
