import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readBatch } from '../../src/downstream/batch.js';
import { MessageError } from '../../src/wire/message.js';

const read = (text: string) => readBatch(Buffer.from(text));
const request = (id: number, method = 'ping') => `{"jsonrpc":"2.0","id":${id},"method":"${method}"}`;

test('the messages of a batch come in their order, with their own bytes', () => {
  const messages = read(` [ ${request(1)} , {"jsonrpc":"2.0","method":"n"} ] `);
  assert.deepEqual(
    messages.map((message) => message.kind),
    ['request', 'notification'],
  );
  assert.equal(messages[0]?.bytes.toString(), request(1));
});

test('an empty batch, one with initialize, one with a malformed item and a huge one are refused whole', () => {
  const texts = [
    '[]',
    `[${request(1)},${request(2, 'initialize')}]`,
    `[${request(1)},7]`,
    `[${request(1)},[${request(2)}]]`,
    `[${Array.from({ length: 101 }, (_, id) => request(id)).join()}]`,
  ];
  for (const text of texts)
    assert.throws(
      () => read(text),
      (error) => error instanceof MessageError && !error.parse,
      text.slice(0, 60),
    );
});

test('a batch that is no JSON is a parse error', () => {
  for (const text of [`[${request(1)}`, `[${request(1)}]]`, `[${request(1)},]`, '['])
    assert.throws(
      () => read(text),
      (error) => error instanceof MessageError && error.parse,
      text,
    );
});
