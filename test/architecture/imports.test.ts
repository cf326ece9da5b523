import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SourceFile, violations } from '../support/architecture.js';
import { filesBelow, readText } from '../support/repository.js';

function source(path: string, ...lines: string[]): SourceFile {
  return { path: `src/${path}`, text: lines.join('\n') };
}

const refused = (...files: SourceFile[]): string => violations(files).join('\n');

test('every source keeps the order of the layers, the confinement of packages and the one door for time and chance', () => {
  const paths = filesBelow('src').filter((path) => path.endsWith('.ts'));
  assert.ok(paths.length > 20, `only ${paths.length} sources were found`);
  assert.deepEqual(violations(paths.map((path) => ({ path, text: readText(path) }))), []);
});

test('a layer imports what is below it', () => {
  const lines = ["import { a } from '../base/a.js';", "import type { B } from '../pipeline/b.js';"];
  assert.deepEqual(violations([source('cache/layer.ts', ...lines), source('app/gateway.ts', ...lines)]), []);
  assert.deepEqual(violations([source('cli/main.ts', "import { run } from '../app/gateway.js';")]), []);
  assert.deepEqual(violations([source('index.ts', "export { run } from './app/gateway.js';")]), []);
});

test('a lower layer that imports a higher one is refused, types and lazy imports included', () => {
  const upward: [string, string][] = [
    ['base/a.ts', "import type { B } from '../wire/b.js';"],
    ['wire/a.ts', "import { b } from '../protocol/b.js';"],
    ['protocol/a.ts', "export { b } from '../pipeline/b.js';"],
    ['pipeline/a.ts', "import { b } from '../cache/b.js';"],
    ['cache/tiers/a.ts', "import {\n  b,\n  c,\n} from '../../app/b.js';"],
    ['app/a.ts', "const b = await import('../cli/b.js');"],
    ['cli/a.ts', "import { b } from '../index.js';"],
  ];
  for (const [path, line] of upward)
    assert.match(refused(source(path, line)), /may not import/, `${path}: ${line}`);
});

test('a part that imports another part is refused, its own folders are not', () => {
  assert.match(
    refused(source('cache/a.ts', "import { b } from '../upstream/b.js';")),
    /cache may not import upstream/,
  );
  assert.equal(refused(source('cache/tiers/a.ts', "import { b } from '../key.js';")), '');
});

test('a package is refused outside the part that it is confined to, and everywhere when nobody names it', () => {
  assert.equal(refused(source('upstream/http.ts', "import { Pool } from 'undici';")), '');
  assert.match(refused(source('downstream/a.ts', "import { Pool } from 'undici';")), /may not import undici/);
  assert.match(refused(source('app/a.ts', "import { z } from 'zod';")), /may not import zod/);
  assert.match(refused(source('cache/a.ts', "import { pino } from 'pino';")), /may not import pino/);
  assert.match(
    refused(source('upstream/a.ts', "import { Client } from '@modelcontextprotocol/sdk/client/index.js';")),
    /may not import @modelcontextprotocol\/sdk\/client/,
  );
  assert.match(refused(source('cache/a.ts', "import type { Pool } from 'undici';")), /may not import undici/);
  assert.equal(refused(source('cache/a.ts', "import type { Server } from 'node:http';")), '');
  assert.match(
    refused(source('cache/a.ts', "import { spawn } from 'node:child_process';")),
    /may not import node:/,
  );
});

test('an import without its extension, from outside src, or for its side effects is refused', () => {
  assert.match(refused(source('cache/a.ts', "import { b } from './b';")), /without its extension/);
  assert.match(refused(source('cache/a.ts', "import { b } from '../../test/b.js';")), /from outside src/);
  assert.match(refused(source('cache/a.ts', "import './b.js';")), /for its side effects/);
});

test('time, timers, chance and the environment are refused outside their doors', () => {
  const doors = [
    'const at = Date.now();',
    'const at = new Date();',
    'setTimeout(() => {}, 1);',
    'const timer = globalThis.setInterval(tick, 1);',
    'const signal = AbortSignal.timeout(1);',
    'const half = Math.random() / 2;',
    'const id = randomUUID();',
    'const home = process.env.HOME;',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: code in a template is what is tested.
    'const text = `at ${Date.now()}`;',
  ];
  for (const line of doors) assert.notEqual(refused(source('cache/a.ts', line)), '', line);
  assert.equal(refused(source('base/clock.ts', ...doors.filter((line) => !line.includes('env')))), '');
  assert.equal(refused(source('config/env.ts', 'export const home = process.env.HOME;')), '');
});

test('what only looks like a door is not refused', () => {
  const lines = [
    '// Date.now() is for base',
    "const text = 'Math.random()';",
    'socket.setTimeout(0);',
    'const date = new Date(at);',
    "const quote = /'/.test(text) || /[/']/.test(text);",
    '/** setTimeout */',
  ];
  assert.equal(refused(source('cache/a.ts', ...lines)), '');
});

test('a default export, module-level state and a note to oneself are refused', () => {
  assert.match(refused(source('cache/a.ts', 'export default 1;')), /default export/);
  assert.match(refused(source('cache/a.ts', 'let count = 0;')), /module-level variable/);
  assert.match(refused(source('cache/a.ts', 'const seen = new Map<string, number>();')), /filled later/);
  assert.equal(
    refused(source('cache/a.ts', "const KNOWN = new Set(['a']);", 'function f() {', '  let n = 0;', '}')),
    '',
  );
  assert.match(refused(source('cache/a.ts', 'const seen: string[] = [];')), /filled later/);
  assert.equal(refused(source('cache/a.ts', 'const NO_HEADERS: Readonly<Record<string, string>> = {};')), '');
  assert.match(refused(source('cache/a.ts', `// TO${'DO'} later`)), /note to oneself/);
  assert.match(refused(source('cache/utils.ts', 'export const a = 1;')), /tells nothing/);
});

test('files that need each other to load are refused, files that share only types are not', () => {
  const [a, b] = [source('cache/a.ts', "import { b } from './b.js';"), "from './a.js';"];
  assert.match(
    refused(a, source('cache/b.ts', `import { a } ${b}`)),
    /a\.ts → src\/cache\/b\.ts → src\/cache\/a\.ts/,
  );
  assert.equal(refused(a, source('cache/b.ts', `import { type A, type B } ${b}`)), '');
});
