import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readMessage, withId } from '../../src/wire/message.js';
import { Gateway, namesOf } from './gateway.js';

/** A gateway whose server answers with exactly the text that is made of the request's id. */
function verbatim(text: (id: string) => string): Gateway {
  return new Gateway(async ({ message }) => readMessage(Buffer.from(text(message.id))));
}

const ODD = (id: string) => `{ "result" : {"tools" : [
  {"name":"zeta","icons":[{"src":"x"}],"execution":{"taskSupport":"optional"},"vendor":{"b":1,"a":2},
   "inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"d":{}},"$ref":"#/definitions/d",
     "maximum":2512292042121000001,"minimum":-0,"multipleOf":1.0,"default":1e400,"x":0.1e-7}},
  {"name":"\\u0061lpha","description":"\\ud83d\\ude00 \\/ \u00e9","inputSchema":true}
 ],"unknown":[null]},"jsonrpc":"2.0","id":${id}}`;

test('a hit is the bytes of the miss, in the server’s order and spelling, but for the id', async () => {
  const gateway = verbatim(ODD);
  const miss = await gateway.send({ id: '1' });
  const hit = await gateway.send({ id: '"second"' });
  assert.equal(gateway.wire.length, 1);
  assert.equal(withId(hit, '"second"').toString(), ODD('"second"'));
  assert.equal(miss.bytes.toString(), ODD('1'));
});

test('the server’s order is kept', async () => {
  const gateway = verbatim(ODD);
  for (const _ of [1, 2]) assert.deepEqual(namesOf(await gateway.list()), ['zeta', 'alpha']);
});

test('what a caller does to a list it was given changes nothing that is kept', async () => {
  const gateway = verbatim(ODD);
  const mine = await gateway.list();
  (mine['tools'] as { inputSchema: object }[])[0] = { inputSchema: {} };
  delete mine['unknown'];
  const again = await gateway.list();
  assert.deepEqual(namesOf(again), ['zeta', 'alpha']);
  assert.deepEqual(again['unknown'], [null]);
});

test('whatever a server lists, miss and hit are byte-identical but for the id', async () => {
  const tool = fc.record({ name: fc.string({ unit: 'binary' }), extra: fc.jsonValue() });
  await fc.assert(
    fc.asyncProperty(
      fc.array(tool, { maxLength: 5 }),
      fc.jsonValue(),
      fc.nat(4),
      async (list, meta, indent) => {
        const result = JSON.stringify({ _meta: meta, tools: list }, null, indent);
        const text = (id: string) => `{"jsonrpc":"2.0","result":${result},"id":${id}}`;
        const gateway = verbatim(text);
        const miss = await gateway.send({ id: '1' });
        const hit = await gateway.send({ id: '22' });
        assert.equal(gateway.wire.length, 1);
        assert.equal(withId(miss, '1').toString(), text('1'));
        assert.equal(withId(hit, '22').toString(), text('22'));
      },
    ),
    { numRuns: 60 },
  );
});
