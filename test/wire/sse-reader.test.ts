import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../src/base/errors.js';
import { type SseEvent, SseReader } from '../../src/wire/sse-reader.js';
import { bytesOf, type LineEnd, rawEvent } from '../support/raw-sse.js';

interface Read {
  readonly event: string;
  readonly data: string;
  readonly id: string | undefined;
  readonly retryMs: number | undefined;
}

function read(chunks: readonly (string | Buffer)[], end = false, maxEventBytes = 1_000_000): Read[] {
  const events: SseEvent[] = [];
  const reader = new SseReader(maxEventBytes, (event) => events.push(event));
  for (const chunk of chunks) reader.push(Buffer.from(chunk as string));
  if (end) reader.end();
  return events.map((event) => ({ ...event, data: event.data.toString() }));
}

function plain(data: string): Read {
  return { event: 'message', data, id: undefined, retryMs: undefined };
}

for (const [name, end] of [
  ['LF', '\n'],
  ['CR', '\r'],
  ['CRLF', '\r\n'],
  ['a mixture of line ends', ['\r\n', '\n', '\r']],
] as [string, LineEnd | LineEnd[]][]) {
  test(`events framed with ${name} are read`, () => {
    const text = rawEvent({ event: 'a', id: '1', data: ['x', 'y'] }, end) + rawEvent({ data: 'z' }, end);
    const expected = [
      { event: 'a', data: 'x\ny', id: '1', retryMs: undefined },
      { event: 'message', data: 'z', id: '1', retryMs: undefined },
    ];
    // A CR at the very end may yet be followed by its LF, so the last block is complete only with more text.
    assert.deepEqual(read([`${text}: `]), expected);
    assert.deepEqual(read([...bytesOf(text), ': ']), expected);
  });
}

test('a CR that ends a chunk and the LF that begins the next are one line end', () => {
  assert.deepEqual(read(['data: a\r', '\n', 'data: b\r', '\n\r\n']), [plain('a\nb')]);
});

test('a block is emitted at the CR of its blank line, without waiting for an LF', () => {
  assert.deepEqual(read(['data: a\r\r']), [plain('a')]);
  assert.deepEqual(read(['data: a\r\n\r']), [plain('a')]);
});

test('characters split over chunks come out whole', () => {
  assert.deepEqual(read(bytesOf('data: {"a":"😀é"}\n\n')), [plain('{"a":"😀é"}')]);
});

test('one leading byte order mark is ignored, a second one is not', () => {
  assert.deepEqual(read(['\uFEFFdata: a\n\n']), [plain('a')]);
  assert.deepEqual(read(bytesOf('\uFEFFdata: a\n\n')), [plain('a')]);
  assert.deepEqual(read(['\uFEFF\uFEFFdata: a\n\ndata: b\n\n']), [plain('b')]);
});

test('comments and unknown fields are ignored', () => {
  assert.deepEqual(read([': ping\n\nfoo: bar\n\n:\ndata: a\nbar\n\n']), [plain('a')]);
});

test('an event with only an id is emitted without data', () => {
  assert.deepEqual(read(['id: 7\ndata: \n\n', 'id: 8\n\n']), [
    { event: 'message', data: '', id: '7', retryMs: undefined },
    { event: 'message', data: '', id: '8', retryMs: undefined },
  ]);
});

test('the order of fields does not matter', () => {
  assert.deepEqual(
    read([rawEvent({ event: 'endpoint', data: '/m', dataFirst: true }, '\r\n')])[0]?.event,
    'endpoint',
  );
});

test('one space behind the colon goes, others stay, and a colon is not needed', () => {
  assert.deepEqual(read(['data:a\n\ndata:  b\n\ndata\n\ndata: a:b\n\n']), ['a', ' b', '', 'a:b'].map(plain));
});

test('an id with NUL is ignored and an empty one clears the last', () => {
  const ids = read(['id: 1\ndata: a\n\nid: 2\0\ndata: b\n\nid\ndata: c\n\ndata: d\n\n']).map(
    (event) => event.id,
  );
  assert.deepEqual(ids, ['1', '1', undefined, undefined]);
});

test('retry takes digits only', () => {
  const delays = read(['retry: 1500\n\nretry: 1.5\ndata: a\n\nretry: -1\ndata: b\n\nretry\ndata: c\n\n']);
  assert.deepEqual(
    delays.map((event) => event.retryMs),
    [1500, undefined, undefined, undefined],
  );
});

test('an unfinished block is dropped at the end', () => {
  assert.deepEqual(read(['data: a\n\ndata: {"half":'], true), [plain('a')]);
  assert.deepEqual(read(['data: text that is no JSON\n'], true), []);
  assert.deepEqual(read(['data: 12'], true), []);
  assert.deepEqual(read(['id: 4'], true), []);
});

test('an unfinished block with a complete JSON object is accepted at the end', () => {
  assert.deepEqual(read(['data: {"a":1}'], true), [plain('{"a":1}')]);
  assert.deepEqual(read(['data: {\ndata: "a":1}\n'], true), [plain('{\n"a":1}')]);
});

test('an event above the limit is refused, one at the limit is not', () => {
  const tooLarge = (error: unknown) => error instanceof GatewayError && error.code === 'too_large';
  assert.equal(read([`data: ${'x'.repeat(94)}\n\n`], false, 100).length, 1);
  assert.throws(() => read([`data: ${'x'.repeat(95)}\n\n`], false, 100), tooLarge);
  assert.throws(() => read(Array(40).fill('data: xxx\n'), false, 100), tooLarge);
  assert.throws(() => read(Array(40).fill('endless'), false, 100), tooLarge);
  assert.equal(read(Array(40).fill('data: xxx\n\n'), false, 100).length, 40);
});

test('the limit forgets each event', () => {
  assert.equal(read([': 0123456789\n'.repeat(1000), 'data: a\n\n'], false, 50).length, 1);
});

test('where the chunks are cut makes no difference', () => {
  const piece = fc.constantFrom(
    'data: a',
    'data:{"é":"😀"}',
    'id: 3',
    'retry: 9',
    'event: e',
    ': c',
    '',
    '\n',
    '\r',
    '\r\n',
  );
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 40 }),
      fc.array(fc.nat(200), { maxLength: 10 }),
      (pieces, cuts) => {
        const bytes = Buffer.from(pieces.join(''));
        const at = [...new Set([0, ...cuts.filter((cut) => cut < bytes.length), bytes.length])].sort(
          (a, b) => a - b,
        );
        const chunks = at.slice(1).map((end, i) => bytes.subarray(at[i], end));
        assert.deepEqual(read(chunks, true), read([bytes], true));
      },
    ),
  );
});

test('a chunk of a million line ends of one kind is read in one pass', () => {
  const events = read(['data: a\n\n'.repeat(500_000), 'data: b\r\r'.repeat(500_000)]);
  assert.equal(events.length, 1_000_000);
});
