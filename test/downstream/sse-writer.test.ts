import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KEEP_ALIVE_COMMENT, messageEvent, namedEvent, primingEvent } from '../../src/wire/sse-writer.js';

/** The data of the one event in a frame, as the specification of event streams reads it. */
function dataOf(frame: Buffer): string {
  const lines = frame.toString().split(/\r\n|\n|\r/);
  return lines
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice('data: '.length))
    .join('\n');
}

test('a message is one event that names its type and id', () => {
  assert.equal(
    messageEvent(Buffer.from('{"a":1}'), 'x-1').toString(),
    'event: message\nid: x-1\ndata: {"a":1}\n\n',
  );
  assert.equal(messageEvent(Buffer.from('{}')).toString(), 'event: message\ndata: {}\n\n');
});

test('a message with line breaks of any kind stays one event', () => {
  const pretty = Buffer.from('{\r\n"a":\r[1,\n\n2]}');
  assert.equal(
    messageEvent(pretty).toString(),
    'event: message\ndata: {\ndata: "a":\ndata: [1,\ndata: \ndata: 2]}\n\n',
  );
});

test('any JSON text comes out of an event as it went in, but for the kind of its line breaks', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      assert.equal(dataOf(messageEvent(Buffer.from(text), 'i')), text);
    }),
  );
});

test('a priming event has an id, a delay and empty data', () => {
  assert.equal(primingEvent('x-0', 1_000).toString(), 'retry: 1000\nid: x-0\ndata: \n\n');
});

test('another event has the type it is given', () => {
  assert.equal(
    namedEvent('endpoint', '/messages?sessionId=1').toString(),
    'event: endpoint\ndata: /messages?sessionId=1\n\n',
  );
});

test('the sign of life is a comment', () => {
  assert.match(KEEP_ALIVE_COMMENT.toString(), /^:[^\n]*\n\n$/);
});
