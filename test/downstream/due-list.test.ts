import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DueList } from '../../src/downstream/due-list.js';
import { FakeClock } from '../support/fake-clock.js';

function listOf(delayMs: number) {
  const clock = new FakeClock();
  const due: string[] = [];
  const list = new DueList<string>(clock, delayMs, (item) => due.push(item));
  return { clock, due, list };
}

test('an item falls due after the delay, not before', () => {
  const { clock, due, list } = listOf(100);
  list.add('a');
  clock.advance(99);
  assert.deepEqual(due, []);
  clock.advance(1);
  assert.deepEqual(due, ['a']);
  assert.equal(list.size, 0);
});

test('adding an item again starts its delay anew', () => {
  const { clock, due, list } = listOf(100);
  list.add('a');
  list.add('b');
  clock.advance(60);
  list.add('a');
  clock.advance(60);
  assert.deepEqual(due, ['b']);
  clock.advance(40);
  assert.deepEqual(due, ['b', 'a']);
});

test('a deleted item never falls due', () => {
  const { clock, due, list } = listOf(100);
  list.add('a');
  list.delete('a');
  clock.advance(1_000);
  assert.deepEqual(due, []);
});

test('one timer serves any number of items, and none runs when nothing waits', () => {
  const { clock, list } = listOf(100);
  for (let i = 0; i < 1_000; i++) list.add(`item ${i}`);
  assert.equal(clock.delays.length, 1);
  clock.advance(100);
  assert.equal(clock.delays.length, 0);
});

test('an item that is added again when it falls due comes once a delay', () => {
  const clock = new FakeClock();
  let times = 0;
  const list: DueList<string> = new DueList(clock, 10, (item) => {
    times++;
    list.add(item);
  });
  list.add('a');
  clock.advance(35);
  assert.equal(times, 3);
});

test('an item that another one removes while both are due is left alone', () => {
  const clock = new FakeClock();
  const due: string[] = [];
  const list: DueList<string> = new DueList(clock, 10, (item) => {
    due.push(item);
    list.delete('b');
  });
  list.add('a');
  list.add('b');
  clock.advance(10);
  assert.deepEqual(due, ['a']);
});

test('waiting items are told longest waiting first, with the instant since when', () => {
  const { clock, list } = listOf(100);
  list.add('a');
  list.add('b');
  clock.advance(5);
  list.add('a');
  assert.deepEqual(
    [...list.waiting()],
    [
      ['b', 1_700_000_000_000],
      ['a', 1_700_000_000_005],
    ],
  );
});

test('a closed list takes nothing and runs no timer', () => {
  const { clock, due, list } = listOf(100);
  list.add('a');
  list.close();
  list.add('b');
  clock.advance(1_000);
  assert.deepEqual(due, []);
  assert.equal(clock.delays.length, 0);
});
