// Compiles src to dist, quietly when nothing has changed. As a command it always compiles. Needs installed packages.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { asCommand, root } from './root.mjs';

const dist = join(root, 'dist');
const entry = join(dist, 'cli', 'main.js');
// Outside dist, which is published as it is, and gone whenever the packages are installed anew.
const stamp = join(root, 'node_modules', '.cache', 'sidegate-build');
const outputSuffix = /(\.d\.ts|\.js)(\.map)?$/;

/** Throws when the compiler refuses; its findings are then on stderr. */
export function build({ force = false } = {}) {
  const inputs = digestOfInputs();
  if (!force && isBuilt(inputs)) return;
  rmSync(stamp, { force: true });
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const { status } = spawnSync(process.execPath, [compiler, '-p', join(root, 'tsconfig.json')], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) throw new Error('The build failed');
  removeStale();
  if (existsSync(entry)) chmodSync(entry, 0o755);
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, inputs);
}

/** SHA-256 of everything the output depends on; dates play no part, so that a checkout of old files counts. */
function digestOfInputs() {
  const hash = createHash('sha256');
  const files = [...filesUnder(join(root, 'src')).sort(), join(root, 'tsconfig.json')];
  const compiler = join(root, 'node_modules', 'typescript', 'package.json');
  for (const file of [...files, compiler])
    hash
      .update(`${relative(root, file)}\0`)
      .update(readFileSync(file))
      .update('\0');
  return hash.digest('hex');
}

/** True when the stamp is of these inputs and nobody has written to dist since. */
function isBuilt(inputs) {
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== inputs) return false;
  const builtAt = statSync(stamp).mtimeMs;
  const outputs = new Set(filesUnder(dist));
  for (const output of outputs) if (statSync(output).mtimeMs > builtAt) return false;
  return filesUnder(join(root, 'src')).every((file) => outputs.has(outputOf(file)));
}

function outputOf(source) {
  return join(dist, relative(join(root, 'src'), source).replace(/\.ts$/, '.js'));
}

/** Removes what no source stands behind any more. dist is never empty meanwhile: a gateway may be running from it. */
function removeStale() {
  for (const output of filesUnder(dist)) {
    const source = join(root, 'src', relative(dist, output).replace(outputSuffix, '.ts'));
    if (!outputSuffix.test(output) || !existsSync(source)) rmSync(output);
  }
}

function filesUnder(folder) {
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder, { recursive: true, withFileTypes: true });
  return names
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath ?? entry.path}${sep}${entry.name}`);
}

asCommand(import.meta.url, () => build({ force: true }));
