import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { splice } from '../../src/wire/json.js';
import { type MemberChanges, memberEdits } from '../../src/wire/members.js';

function changed(text: string, changes: MemberChanges, at = 0): string {
  const bytes = Buffer.from(text);
  return splice(bytes, memberEdits(bytes, at, changes)).toString();
}

test('members are removed with their commas, wherever they stand', () => {
  const remove = ['a', 'b'];
  const cases = [
    ['{"a":1,"x":2}', '{"x":2}'],
    ['{"x":2,"a":1}', '{"x":2}'],
    ['{"x":2, "a":1 , "y":3}', '{"x":2, "y":3}'],
    ['{ "a":1,"b":[1,2] }', '{ }'],
    ['{"a":1,"x":2,"b":3,"y":4}', '{"x":2,"y":4}'],
    ['{"x":1,"a":1,"b":2}', '{"x":1}'],
    ['{}', '{}'],
    ['{"\\u0061":1,"x":"a"}', '{"x":"a"}'],
  ];
  for (const [text, expected] of cases) {
    const result = changed(text as string, { remove });
    assert.equal(JSON.stringify(JSON.parse(result)), JSON.stringify(JSON.parse(expected as string)), text);
  }
  assert.equal(changed('{"n":9007199254740993,"a":0}', { remove }), '{"n":9007199254740993}');
});

test('a member is replaced where it stands, and put first where it is missing', () => {
  assert.equal(changed('{"x":1,"a":2}', { set: { a: '"b"' } }), '{"x":1,"a":"b"}');
  assert.equal(changed('{"x":1}', { set: { a: '{}' } }), '{"a":{},"x":1}');
  assert.equal(changed('{ }', { set: { a: '1', b: '2' } }), '{"a":1,"b":2 }');
  assert.equal(changed('{"r":1}', { set: { a: '1' }, remove: ['r'] }), '{"a":1}');
  assert.equal(changed('[{"x":1}]', { set: { a: '1' } }, 1), '[{"a":1,"x":1}]');
});

test('a member that is to be changed and is given twice is refused, others may be', () => {
  assert.throws(() => changed('{"a":1,"a":2}', { remove: ['a'] }), /given twice/);
  assert.throws(() => changed('{"a":1,"a":2}', { set: { a: '3' } }), /given twice/);
  assert.equal(changed('{"x":1,"x":2,"a":1}', { remove: ['a'] }), '{"x":1,"x":2}');
});

test('whatever the object, it holds afterwards what was set, nothing that was removed, and all the rest in its order', () => {
  const key = fc.constantFrom('a', 'b', 'c', 'x', 'y', 'ü', '"');
  const members = fc.uniqueArray(fc.tuple(key, fc.jsonValue()), { selector: ([name]) => name });
  fc.assert(
    fc.property(
      members,
      fc.subarray(['a', 'b', 'c']),
      fc.subarray(['b', 'x', 'ü']),
      (given, remove, added) => {
        const spaced = JSON.stringify(Object.fromEntries(given), null, 1);
        const set = Object.fromEntries(added.map((name) => [name, '"new"']));
        const result = JSON.parse(changed(spaced, { remove, set })) as Record<string, unknown>;
        const rest = Object.fromEntries(
          given.filter(([name]) => !remove.includes(name) || added.includes(name)),
        );
        assert.deepEqual(result, {
          ...JSON.parse(JSON.stringify(rest)),
          ...Object.fromEntries(added.map((name) => [name, 'new'])),
        });
      },
    ),
  );
});
