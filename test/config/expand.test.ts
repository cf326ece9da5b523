// biome-ignore-all lint/suspicious/noTemplateCurlyInString: such texts are what is tested
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type Environment, expandText, expandValue } from '../../src/config/expand.js';

const ENV: Environment = { SET: 'value', EMPTY: '', DOLLARS: '${SET} $x', SET_2: '2' };

function expanded(source: string, env: Environment = ENV): string {
  const { text, problems } = expandText(source, env);
  assert.deepEqual(problems, [], source);
  return text;
}

describe('variables in a configuration', () => {
  it('are replaced by their values, several in one string', () => {
    assert.equal(expanded('a ${SET}/${SET_2} ${env:SET}!'), 'a value/2 value!');
  });

  it('stand for the empty text where they are empty', () => {
    assert.equal(expanded('<${EMPTY}>'), '<>');
  });

  it('take their default where they are unset or empty', () => {
    assert.equal(expanded('${NONE:-d} ${EMPTY:-d} ${SET:-d} ${env:NONE:-d} <${NONE:-}>'), 'd d value d <>');
  });

  it('may have defaults within defaults', () => {
    assert.equal(expanded('${A:-x${B:-${SET}-${C:-deep}}y}'), 'xvalue-deepy');
  });

  it('are not looked up in a default that is not needed', () => {
    assert.equal(expanded('${SET:-${NONE}}'), 'value');
  });

  it('are not looked up in the value of a variable', () => {
    assert.equal(expanded('${DOLLARS}'), '${SET} $x');
  });

  it('leave a dollar alone that opens no brace', () => {
    for (const text of ['$V', '$', '$$', 'a$', '$ {V}', '}', '{}', '$1 $(x) %V%'])
      assert.equal(expanded(text), text);
  });

  it('can be written literally with a second dollar', () => {
    assert.equal(expanded('$${SET} $$${SET}'), '${SET} $${SET}');
    assert.equal(expanded('${NONE:-$${SET}}!'), '${SET}!');
    assert.equal(expanded('${SET:-$${SET}}!'), 'value!');
  });

  it('are a problem by name where they are unset', () => {
    assert.deepEqual(expandText('${NONE} ${SET} ${OTHER}', ENV).problems, [
      'variable NONE is not set',
      'variable OTHER is not set',
    ]);
  });

  it('are not found among what every object inherits', () => {
    for (const name of ['constructor', '__proto__', 'toString'])
      assert.deepEqual(expandText(`\${${name}}`, ENV).problems, [`variable ${name} is not set`]);
  });

  it('are a problem in every form that is not supported, and what may be a secret in it is not shown', () => {
    const forms = [
      '${input:key}',
      '${}',
      '${1A}',
      '${A-x}',
      '${A:?x}',
      '${A:+x}',
      '${ A }',
      '${A.b}',
      '${command:a:b}',
    ];
    for (const form of forms) {
      const { problems } = expandText(form, ENV);
      assert.equal(problems.length, 1, form);
      assert.match(problems[0] ?? '', /is not supported: write \$\{NAME\}/);
    }
    assert.match(expandText('${input:key}', ENV).problems[0] ?? '', /^`\$\{input:…\}`/);
    assert.ok(!expandText('${A:?secret}', ENV).problems[0]?.includes('secret'));
  });

  it('are a problem where the brace is not closed', () => {
    for (const text of ['${', '${SET', '${SET:-x', '${A:-${B}', '${A:-$${B}'])
      assert.deepEqual(expandText(text, { B: 'b' }).problems, ['a `${` is not closed'], text);
  });

  it('never leave an opening brace that the text did not escape', () => {
    const piece = fc.constantFrom(
      '${',
      '$',
      '{',
      '}',
      ':-',
      'SET',
      'NONE',
      'EMPTY',
      'input:',
      'env:',
      ' ',
      '-',
      '$$',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 24 }), (pieces) => {
        const source = pieces.join('');
        const { text, problems } = expandText(source, ENV);
        if (problems.length === 0 && !source.includes('$${'))
          assert.ok(!text.includes('${'), `${source} → ${text}`);
      }),
      { numRuns: 2000 },
    );
  });

  it('change no text in which every opening brace is escaped', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('$', '{', '}', 'a', ':', '-', 'ü') }), (text) => {
        fc.pre(!/\$\$\{/.test(text));
        assert.equal(expanded(text.replaceAll('${', '$$${')), text);
      }),
    );
  });

  it('give the value of the environment, whatever it holds', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string(), (value, fallback) => {
        assert.equal(expanded('<${X}>', { X: value }), `<${value}>`);
        fc.pre(!/[${}]/.test(fallback));
        assert.equal(expanded(`\${X:-${fallback}}`, { X: value }), value || fallback);
      }),
    );
  });

  it('are replaced in time linear to the text, however it is nested', () => {
    const deep = 200_000;
    assert.equal(expanded(['${A:-'.repeat(deep), '}'.repeat(deep)].join('x')), 'x');
    assert.equal(expandText('${A'.repeat(deep), {}).problems.length, 1);
    assert.equal(expandText('${A:-'.repeat(deep), {}).problems.length, 1);
  });
});

describe('a whole value', () => {
  it('is expanded in every string, keys left alone, and each problem has its path', () => {
    const { value, problems } = expandValue(
      { '${SET}': ['${SET}', 1, null, { deep: '${NONE}' }], ok: true },
      ENV,
      ['x'],
    );
    assert.deepEqual(value, { '${SET}': ['value', 1, null, { deep: undefined }], ok: true });
    assert.deepEqual(problems, [{ path: ['x', '${SET}', 3, 'deep'], message: 'variable NONE is not set' }]);
  });

  it('that nests without end is a problem, not a crash', () => {
    const text = '['.repeat(5_000) + ']'.repeat(5_000);
    assert.match(expandValue(JSON.parse(text), ENV).problems[0]?.message ?? '', /nested too deeply/);
  });
});
