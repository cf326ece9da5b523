import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { readDocument } from '../../src/config/document.js';
import { ConfigSyntaxError, strictJson } from '../../src/config/jsonc.js';

const parse = (text: string): unknown => JSON.parse(strictJson(Buffer.from(text)).toString());

function errorOf(text: string | Buffer): ConfigSyntaxError {
  try {
    readDocument(Buffer.from(text as string));
  } catch (error) {
    assert.ok(error instanceof ConfigSyntaxError);
    return error;
  }
  throw new Error('was accepted');
}

describe('a configuration file as text', () => {
  it('may hold comments, trailing commas and a byte order mark', () => {
    const text =
      '\ufeff// head\n{ "a": [1, 2, /* two */ ], /* , */ "b": "// no comment", // end\n }\n/* tail */';
    assert.deepEqual(parse(text), { a: [1, 2], b: '// no comment' });
  });

  it('keeps what only looks like a comment or a trailing comma inside a string', () => {
    assert.deepEqual(parse('{"a":",}","b":"\\",]","c":"/* x */"}'), { a: ',}', b: '",]', c: '/* x */' });
  });

  it('is read as JSON.parse reads it wherever it is JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2, '\t'), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        assert.deepEqual(parse(text), JSON.parse(text));
      }),
    );
  });

  it('never repairs what is broken in another way', () => {
    for (const text of [
      '{"a":1,,}',
      '{,}',
      '[,]',
      '{"a":}',
      "{'a':1}",
      '{"a":1} {}',
      '{"a":1 /* x',
      '',
      '   ',
      '/',
    ])
      assert.throws(() => strictJson(Buffer.from(text)), ConfigSyntaxError, text);
  });

  it('is refused with the line and column of the fault', () => {
    const { line, column } = errorOf('{\n  // ünïcödé\n  "mcpServers": {\n    "ü": { "url": nope }\n  }\n}');
    assert.deepEqual({ line, column }, { line: 4, column: 19 });
  });

  it('counts columns without the byte order mark', () => {
    const { line, column } = errorOf('\ufeff{ "a" 1 }');
    assert.deepEqual({ line, column }, { line: 1, column: 7 });
  });

  it('is refused without a word of its content, which may be a secret', () => {
    const secret = 'sk-12345';
    for (const text of [
      `{"a": ${secret}}`,
      `{"a": "${secret}`,
      `{"a": "x" "${secret}"}`,
      `{"a":"\\x${secret}"}`,
    ])
      assert.ok(!errorOf(text).message.includes(secret), errorOf(text).message);
  });

  it('must be UTF-8', () => {
    const utf16 = Buffer.from('\ufeff{"mcpServers":{}}', 'utf16le');
    assert.throws(() => readDocument(utf16), {
      name: 'ConfigSyntaxError',
      message: 'The file is not UTF-8 text',
    });
  });

  it('must be an object', () => {
    assert.match(errorOf('[]').message, /Expected an object/);
  });

  it('names a server once, and says where it is named again', () => {
    const error = errorOf('{"mcpServers":{\n"a":{},\n"a":{}}}');
    assert.deepEqual([error.line, error.message], [3, 'Member "a" is given twice']);
  });

  it('has its servers in one place', () => {
    assert.match(errorOf('{"mcpServers":{},"servers":{}}').message, /give one of them/);
    assert.match(errorOf('{"mcpServers":[]}').message, /must be an object of server id to entry/);
  });

  it('keeps the order of its servers, ids that look like numbers included', () => {
    const { servers } = readDocument(Buffer.from('{"mcpServers":{"b":{},"10":{},"2":{},"a":{}}}'));
    assert.deepEqual(
      servers?.map(({ id }) => id),
      ['b', '10', '2', 'a'],
    );
  });

  it('is read in time linear to its length', () => {
    const hostile = `{"a": [${'[],'.repeat(200_000)}] ${'/**/'.repeat(200_000)} ,}`;
    assert.ok(parse(hostile));
  });
});
