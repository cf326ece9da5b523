import assert from 'node:assert/strict';
import { validateHeaderValue } from 'node:http';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeHeaderValue, encodeHeaderValue } from '../../src/wire/mcp-headers.js';

/** Texts that are near the edge between plain and coded. */
const text = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom(' ', '\t', 'a', '=', '?', '\r', '\n', 'é', '\u007f', '\ufeff') }),
  fc.string({ unit: 'grapheme-ascii' }).map((inner) => `=?base64?${inner}?=`),
  fc.constantFrom('=?base64?=', '=?base64??=', '=?base64?', '?='),
);

test('every text comes back as it was, by way of what a header can hold', () => {
  fc.assert(
    fc.property(text, (original) => {
      const value = encodeHeaderValue(original);
      validateHeaderValue('mcp-name', value);
      assert.equal(value, value.trim());
      assert.notEqual(value, '');
      assert.equal(decodeHeaderValue(value), original);
    }),
    { numRuns: 2_000 },
  );
});

test('a text is coded only where it must be', () => {
  for (const plain of ['us-west1', 'a b\tc', '=?BASE64?YQ==?=', '=?base64?YQ==', 'YQ==?=', '~!#"\\'])
    assert.equal(encodeHeaderValue(plain), plain);
  const coded = {
    'Hello, 世界': 'SGVsbG8sIOS4lueVjA==',
    ' padded ': 'IHBhZGRlZCA=',
    'line1\nline2': 'bGluZTEKbGluZTI=',
    '=?base64?literal?=': 'PT9iYXNlNjQ/bGl0ZXJhbD89',
    '=?base64?=': 'PT9iYXNlNjQ/PQ==',
    '': '',
    '\t': 'CQ==',
    '\u007f': 'fw==',
  };
  for (const [original, payload] of Object.entries(coded))
    assert.equal(encodeHeaderValue(original), `=?base64?${payload}?=`, JSON.stringify(original));
});

test('a value that stands for no text is told apart', () => {
  const broken = {
    'an alphabet of its own': '=?base64?-_8=?=',
    'white space in the code': '=?base64?YQ ==?=',
    'padding left out': '=?base64?YQ?=',
    'too much padding': '=?base64?YWI==?=',
    'padding in the middle': '=?base64?YQ==YQ==?=',
    'a lone byte of UTF-8': '=?base64?/w==?=',
    'a surrogate in UTF-8': '=?base64?7aCA?=',
    'markers that share a character': '=?base64?=',
    'a byte above ASCII': 'caf\u00e9',
    'a control character': 'a\u0000b',
    'a line break': 'a\r\nb',
    'the character that deletes': '\u007f',
  };
  for (const [what, value] of Object.entries(broken)) assert.equal(decodeHeaderValue(value), undefined, what);
});

test('the markers count as they are written only', () => {
  for (const value of ['=?Base64?YQ==?=', '=?base64?YQ==', 'x=?base64?YQ==?=', '=?utf-8?b?YQ==?='])
    assert.equal(decodeHeaderValue(value), value);
  assert.equal(decodeHeaderValue('=?base64?YQ==?='), 'a');
  assert.equal(decodeHeaderValue('=?base64??='), '');
});
