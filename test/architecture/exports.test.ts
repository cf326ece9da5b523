import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { readText, repository } from '../support/repository.js';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
}

const manifest = JSON.parse(readText('package.json')) as Manifest;

async function packedPaths(): Promise<string[]> {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const { stdout } = await promisify(execFile)('npm', args, { cwd: repository });
  const [packed] = JSON.parse(stdout) as { files: { path: string }[] }[];
  return packed?.files.map(({ path }) => path) ?? [];
}

test('every export leads to a built file, and a user of the package can import it by name', async () => {
  for (const [name, target] of Object.entries(manifest.exports)) {
    for (const path of typeof target === 'string' ? [target] : Object.values(target))
      assert.ok(existsSync(join(repository, path)), `${name} leads to ${path}, which is not built`);
  }
  const resolved = import.meta.resolve(manifest.name);
  assert.equal(resolved, pathToFileURL(join(repository, 'dist/index.js')).href);
  await import(resolved);
});

test('the command is a built file that Node runs', () => {
  for (const path of Object.values(manifest.bin)) {
    accessSync(join(repository, path), constants.X_OK);
    assert.match(readText(path), /^#!\/usr\/bin\/env node\n/);
  }
});

test('a packed release holds what it runs and names, and neither sources nor tests', async () => {
  const packed = await packedPaths();
  for (const needed of ['package.json', 'LICENSE', 'dist/index.js', 'dist/index.d.ts', 'dist/cli/main.js'])
    assert.ok(packed.includes(needed), `${needed} is missing`);
  const allowed = /^(?:dist\/.+\.(?:js|d\.ts)(?:\.map)?|package\.json|LICENSE|README\.md)$/;
  assert.deepEqual(
    packed.filter((path) => !allowed.test(path)),
    [],
  );
});

test('the licence is Apache-2.0, in the manifest and in full', () => {
  assert.equal(manifest.license, 'Apache-2.0');
  assert.match(readText('LICENSE'), /^\s+Apache License\s+Version 2\.0, January 2004/);
  assert.ok(statSync(join(repository, 'LICENSE')).size > 10_000);
});
