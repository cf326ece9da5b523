import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { member, skipValue } from '../../src/wire/json.js';
import { idKey, isBatch, MessageError, readMessage, withId } from '../../src/wire/message.js';

const read = (text: string) => readMessage(Buffer.from(text));

test('a message is what its members make it, whatever their order and the white space', () => {
  assert.equal(read('{"id":1,"params":{},"method":"a","jsonrpc":"2.0"}').kind, 'request');
  assert.equal(read(' \n{ "jsonrpc" : "2.0" , "method" : "a" }\t').kind, 'notification');
  assert.equal(read('{"result":null,"id":"x","jsonrpc":"2.0"}').kind, 'result');
  assert.equal(read('{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}').kind, 'error');
  // MCP has no positional params, JSON-RPC has: they pass.
  assert.equal(read('{"jsonrpc":"2.0","method":"a","params":[1]}').kind, 'notification');
  assert.equal(read('\ufeff{"jsonrpc":"2.0","method":"a"}').method, 'a');
});

test('what is not one JSON-RPC message of MCP is refused, broken JSON apart from a broken envelope', () => {
  const parse = [
    '',
    '{',
    '{"a"}',
    'nul',
    '{"jsonrpc":"2.0","method":"a"} x',
    '{"a":"\u0001"}',
    '{"a":01}',
    '{"a":"\\x"}',
  ];
  const envelope = [
    '1',
    'null',
    '[]',
    '{"method":"a"}',
    '{"jsonrpc":"1.0","method":"a"}',
    '{"jsonrpc":"2.0","method":1}',
    '{"jsonrpc":"2.0","method":"a","id":null}',
    '{"jsonrpc":"2.0","method":"a","id":{}}',
    '{"jsonrpc":"2.0","method":"a","id":true}',
    '{"jsonrpc":"2.0","method":"a","params":null}',
    '{"jsonrpc":"2.0","id":1}',
    '{"jsonrpc":"2.0","id":1,"result":1,"error":{}}',
    '{"jsonrpc":"2.0","id":1,"method":"a","result":1}',
    '{"jsonrpc":"2.0","id":1,"error":"no"}',
    '{"jsonrpc":"2.0","id":1,"method":"a","m\\u0065thod":"b"}',
  ];
  for (const [texts, isParse] of [[parse, true] as const, [envelope, false] as const])
    for (const text of texts)
      assert.throws(
        () => read(text),
        (error: unknown) => error instanceof MessageError && error.parse === isParse,
        text,
      );
  assert.throws(() => readMessage(Buffer.from([0x7b, 0xff, 0x7d])), MessageError);
});

test('a response with another id differs in nothing else', () => {
  const text =
    '{"result":{"n":1.0,"big":9007199254740993,"e":"\\u0061"},"jsonrpc":"2.0","id":17,"x":[1 , 2]}';
  assert.equal(withId(read(text), '"a"').toString(), text.replace('17', '"a"'));
  const anonymous = '{"jsonrpc":"2.0","error":{"code":-32000,"message":"m"}}';
  assert.equal(read(withId(read(anonymous), '5').toString()).id, '5');
});

test('the same id in two spellings is one, a number and its text are two', () => {
  assert.equal(idKey('"\\u0061"'), idKey('"a"'));
  assert.notEqual(idKey('1'), idKey('"1"'));
});

test('nesting is bounded by nothing but the text', () => {
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
  assert.equal(read(`{"jsonrpc":"2.0","id":1,"result":${deep}}`).kind, 'result');
});

test('an array is a batch, also behind white space', () => {
  assert.ok(isBatch(Buffer.from(' \n[1]')));
  assert.ok(!isBatch(Buffer.from('{}')));
});

test('the scanner accepts what JSON.parse accepts, and finds the end of it', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      const bytes = Buffer.from(text);
      assert.equal(skipValue(bytes, 0), bytes.length);
    }),
  );
});

test('the scanner refuses what JSON.parse refuses', () => {
  const damaged = fc
    .tuple(fc.json(), fc.nat(), fc.constantFrom('', '"', '{', ']', ',', '\\', '0', 'e', ' '))
    .map(([text, at, by]) => {
      const cut = at % (text.length + 1);
      return text.slice(0, cut) + by + text.slice(cut + 1);
    });
  fc.assert(
    fc.property(damaged, (text) => {
      let good = true;
      try {
        JSON.parse(text);
      } catch {
        good = false;
      }
      const bytes = Buffer.from(text);
      const scanned = () => {
        try {
          return skipValue(bytes, 0) === bytes.length;
        } catch {
          return false;
        }
      };
      // White space around a value is not the scanner's business.
      if (text === text.trim()) assert.equal(scanned(), good, text);
    }),
    { numRuns: 2_000 },
  );
});

test('a member is found by its name however it is spelled', () => {
  const bytes = Buffer.from('{"a":{"\\u0062":[1,2]},"c":0}');
  assert.equal(
    bytes.toString('utf8', member(bytes, 0, 'a', 'b')?.start, member(bytes, 0, 'a', 'b')?.end),
    '[1,2]',
  );
  assert.equal(member(bytes, 0, 'a', 'x'), undefined);
  assert.equal(member(bytes, 0, 'c', 'x'), undefined);
});
