import assert from 'node:assert/strict';
import { existsSync, rmSync, statSync, utimesSync } from 'node:fs';
import { afterEach, beforeEach, test } from 'node:test';
import { Clone } from '../support/clone.js';

let clone: Clone;

beforeEach(() => {
  clone = new Clone();
});

afterEach(() => clone.remove());

const INSTALLED = /npm was asked: ci --include=dev/;

test('a clone whose packages are in place is built without asking npm, and without a word on stdout', async () => {
  const { status, stdout, stderr } = await clone.run('ready.mjs');
  assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: '', stderr: '' });
  assert.ok(existsSync(clone.path('dist/index.js')));
});

test('packages are installed when the lock file is newer than the installation, once', async () => {
  const later = new Date(Date.now() + 1_000);
  utimesSync(clone.path('package-lock.json'), later, later);
  const first = await clone.run('ready.mjs');
  assert.equal(first.status, 0);
  assert.match(first.stderr, INSTALLED);
  assert.equal(first.stdout, '');
  const earlier = new Date(Date.now() - 60_000);
  utimesSync(clone.path('package-lock.json'), earlier, earlier);
  assert.equal((await clone.run('ready.mjs')).stderr, '');
});

test('packages are installed when one is missing, or when an installation was not finished', async () => {
  rmSync(clone.path('node_modules/zod'));
  assert.match((await clone.run('ready.mjs')).stderr, INSTALLED);
  clone.remove();
  clone = new Clone();
  rmSync(clone.path('node_modules/.package-lock.json'));
  assert.match((await clone.run('ready.mjs')).stderr, INSTALLED);
});

test('a failed installation ends it with a plain sentence, and nothing is built', async () => {
  rmSync(clone.path('node_modules/.package-lock.json'));
  const { status, stderr } = await clone.run('ready.mjs', [], { NPM_FAILS: '1' });
  assert.equal(status, 1);
  assert.match(stderr, /^Packages could not be installed$/m);
  assert.ok(!existsSync(clone.path('dist')));
});

test('what is built already is left alone, and built anew when a source changes or the output was touched', async () => {
  const builtAt = async (): Promise<number> => {
    assert.equal((await clone.run('ready.mjs')).status, 0);
    return statSync(clone.path('dist/index.js')).mtimeMs;
  };
  const first = await builtAt();
  assert.equal(await builtAt(), first);
  clone.write('src/index.ts', 'export const changed = true;\n');
  const second = await builtAt();
  assert.notEqual(second, first);
  const later = new Date(Date.now() + 60_000);
  utimesSync(clone.path('dist/index.js'), later, later);
  assert.ok((await builtAt()) < later.getTime());
});

test('output without a source is removed', async () => {
  clone.write('src/old.ts', 'export {};\n');
  await clone.run('ready.mjs');
  assert.ok(existsSync(clone.path('dist/old.js')));
  rmSync(clone.path('src/old.ts'));
  clone.write('dist/notes.txt', 'left by hand');
  await clone.run('ready.mjs');
  for (const gone of ['old.js', 'old.d.ts', 'old.js.map', 'notes.txt'])
    assert.ok(!existsSync(clone.path('dist', gone)), `${gone} is still there`);
});

test('a source that does not compile fails the build until it is mended', async () => {
  clone.write('src/index.ts', "export const count: number = 'one';\n");
  const broken = await clone.run('ready.mjs');
  assert.equal(broken.status, 1);
  assert.match(broken.stderr, /src\/index\.ts.*TS2322/);
  assert.equal(broken.stdout, '');
  assert.equal((await clone.run('ready.mjs')).status, 1);
  clone.write('src/index.ts', 'export const count: number = 1;\n');
  assert.equal((await clone.run('ready.mjs')).status, 0);
});

test('the command that is built can be run as it is', async () => {
  clone.write('src/cli/main.ts', '#!/usr/bin/env node\nexport {};\n');
  assert.equal((await clone.run('build.mjs')).status, 0);
  assert.equal(statSync(clone.path('dist/cli/main.js')).mode & 0o777, 0o755);
});
