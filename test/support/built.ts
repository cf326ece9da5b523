import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
let folder: string | undefined;

/**
 * Folder of the compiled program, as it is published: `dist` in it. A loader of TypeScript will not do where processes
 * are tested: its helper shares the program's stderr and makes it blocking. Made once a test file, gone with its process.
 */
export function builtFolder(): string {
  folder ??= build();
  return folder;
}

function build(): string {
  const made = mkdtempSync(join(tmpdir(), 'sidegate-built-'));
  process.once('exit', () => rmSync(made, { recursive: true, force: true }));
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const options = [
    '--outDir',
    join(made, 'dist'),
    '--noCheck',
    '--declaration',
    'false',
    '--sourceMap',
    'false',
  ];
  const args = [compiler, '-p', join(ROOT, 'tsconfig.json'), ...options];
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' });
  if (status !== 0) throw new Error('The program does not compile');
  copyFileSync(join(ROOT, 'package.json'), join(made, 'package.json'));
  symlinkSync(join(ROOT, 'node_modules'), join(made, 'node_modules'), 'junction');
  return made;
}
