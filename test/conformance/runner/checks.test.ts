import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Check, isPassed, type Run, type Status, setbacks } from './checks.js';
import { legLine, tally } from './report.js';

function checks(verdicts: Record<string, Status>): Check[] {
  return Object.entries(verdicts).map(([id, status]) => ({ id, status }));
}

function run(scenarios: Record<string, Record<string, Status>>): Run {
  return new Map(Object.entries(scenarios).map(([name, verdicts]) => [name, checks(verdicts)]));
}

const compared = (before: Record<string, Status>, after: Record<string, Status>) =>
  setbacks(run({ scenario: before }), run({ scenario: after })).map(({ check }) => check);

test('a scenario passes only if something succeeded and nothing failed', () => {
  assert.equal(isPassed(checks({ a: 'SUCCESS', b: 'WARNING' })), true);
  assert.equal(isPassed(checks({ a: 'SUCCESS', b: 'FAILURE' })), false);
  assert.equal(isPassed(checks({ a: 'INFO', b: 'SKIPPED' })), false);
  assert.equal(isPassed([]), false);
  assert.equal(isPassed(undefined), false);
});

test('every step down is a setback, warnings included', () => {
  const order: Status[] = ['SUCCESS', 'SKIPPED', 'WARNING', 'FAILURE'];
  for (const [i, before] of order.entries())
    for (const [j, after] of order.entries())
      assert.deepEqual(compared({ a: before }, { a: after }), j > i ? ['a'] : [], `${before} -> ${after}`);
});

test('a note is as good as a success, and need not come again', () => {
  assert.deepEqual(compared({ a: 'SUCCESS', b: 'INFO' }, { a: 'INFO', b: 'SUCCESS' }), []);
  assert.deepEqual(compared({ a: 'INFO' }, {}), []);
  assert.deepEqual(compared({ a: 'INFO' }, { a: 'FAILURE' }), ['a']);
});

test('a check that vanished is a setback, and so is a new one that complains', () => {
  assert.deepEqual(compared({ a: 'SUCCESS' }, {}), ['a']);
  assert.deepEqual(compared({}, { a: 'SUCCESS', b: 'SKIPPED' }), []);
  assert.deepEqual(compared({}, { a: 'WARNING', b: 'FAILURE' }), ['a', 'b']);
});

test('of a check that occurs several times the worst counts', () => {
  const once = new Map([['scenario', checks({ a: 'SUCCESS' })]]);
  const twice = new Map([['scenario', [...checks({ a: 'FAILURE' }), ...checks({ a: 'SUCCESS' })]]]);
  assert.equal(setbacks(once, twice).length, 1);
  assert.equal(setbacks(twice, once).length, 0);
});

test('a scenario without an end is one setback', () => {
  const baseline = run({ scenario: { a: 'SUCCESS', b: 'SUCCESS' } });
  assert.deepEqual(setbacks(baseline, new Map()), [{ scenario: 'scenario' }]);
});

test('a leg counts what is required, and what got worse beyond that as failed', () => {
  const required = ['good', 'bad', 'missing'];
  const baseline = run({ good: { a: 'SUCCESS' }, bad: { a: 'SUCCESS' }, extra: { a: 'SUCCESS' } });
  const after = run({ good: { a: 'SUCCESS' }, bad: { a: 'FAILURE' }, extra: { a: 'WARNING' } });
  const worse = setbacks(baseline, after);
  assert.deepEqual(tally(required, after, worse), { passed: 1, failed: 3 });
  assert.equal(
    legLine('leg', required, after, worse),
    'leg: 1/3 scenarios, 1/2 checks, failing: bad(1) missing(not run), worse than direct: bad/a extra/a',
  );
  assert.equal(
    legLine('leg', ['good'], baseline, []),
    'leg: 1/1 scenarios, 1/1 checks, worse than direct: none',
  );
  assert.equal(legLine('leg', ['good'], baseline), 'leg: 1/1 scenarios, 1/1 checks');
});
