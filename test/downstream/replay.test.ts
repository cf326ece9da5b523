import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReplayLog } from '../../src/downstream/replay.js';
import { FakeClock } from '../support/fake-clock.js';

const message = (n: number) => Buffer.from(`{"n":${n}}`);
const idOf = (frame: Buffer) => /^id: (.*)$/m.exec(frame.toString())?.[1] ?? '';
const numbers = (frames: readonly Buffer[]) =>
  frames.map((frame) => Number(/"n":(\d+)/.exec(frame.toString())?.[1]));

function logOf(maxBytes = 100_000, maxAgeMs = 60_000) {
  const clock = new FakeClock();
  return { clock, log: new ReplayLog('tag', maxBytes, maxAgeMs, clock) };
}

function cursorAt(log: ReplayLog, eventId: string) {
  const cursor = log.locate(eventId);
  assert.ok(cursor);
  return cursor;
}

test('what was sent on a stream behind an event is repeated, and nothing of other streams', () => {
  const { log } = logOf();
  const first = log.append(1, message(1));
  log.append(2, message(2));
  log.append(1, message(3));
  log.append(1, message(4));
  assert.deepEqual(numbers(log.since(cursorAt(log, idOf(first)))), [3, 4]);
});

test('repeated events are the bytes that were sent, ids and all', () => {
  const { log } = logOf();
  const place = log.placeOf(3);
  const frame = log.append(3, message(1));
  assert.deepEqual(log.since(cursorAt(log, place)), [frame]);
});

test('no two events of a session share an id', () => {
  const { log } = logOf();
  const ids = Array.from({ length: 100 }, (_, n) => idOf(log.append(n % 3, message(n))));
  log.clear();
  ids.push(...Array.from({ length: 100 }, (_, n) => idOf(log.append(n % 3, message(n)))));
  assert.equal(new Set(ids).size, 200);
});

test('ids of other sessions and garbage name no place', () => {
  const { log } = logOf();
  log.append(1, message(1));
  for (const id of [
    'other-1-0',
    'tag-1',
    'tag-1-0-0',
    'tag--0',
    'tag-1-x',
    'tag-1-',
    'tag-1-1e3',
    '',
    '-',
    'tag-1-99999999999999999',
  ])
    assert.equal(log.locate(id), undefined, id);
});

test('kept bytes stay below the bound, and the newest events are kept', () => {
  const { log } = logOf(10_000);
  const start = log.placeOf(1);
  for (let n = 0; n < 1_000; n++) log.append(1, message(n));
  assert.ok(log.bytes <= 10_000);
  const kept = numbers(log.since(cursorAt(log, start)));
  assert.equal(kept.at(-1), 999);
  assert.ok(kept.length > 10 && kept.length < 1_000);
});

test('a message above the bound is not kept', () => {
  const { log } = logOf(1_000);
  const big = Buffer.from(`"${'x'.repeat(2_000)}"`);
  assert.equal(log.fits(big.length), false);
  log.append(1, big);
  assert.equal(log.bytes, 0);
});

test('events older than a resumption may be are dropped', () => {
  const { clock, log } = logOf(100_000, 1_000);
  const start = log.placeOf(1);
  log.append(1, message(1));
  clock.advance(600);
  log.append(1, message(2));
  clock.advance(600);
  log.append(1, message(3));
  assert.deepEqual(numbers(log.since(cursorAt(log, start))), [2, 3]);
});
