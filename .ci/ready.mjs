// Makes a clone ready to run: packages as the lock file has them, dist as src has it. Does nothing when nothing has
// changed. Plain Node and no package, since there may be none yet; all output goes to stderr, stdout is the gateway's.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { build } from './build.mjs';
import { asCommand, root } from './root.mjs';

// npm writes it last, so that it tells a finished installation from an interrupted one.
const installed = join(root, 'node_modules', '.package-lock.json');

/** Throws with one line for people; what npm or the compiler had to say is then on stderr. */
export function ready() {
  if (mustInstall()) install();
  build();
}

function mustInstall() {
  if (!existsSync(installed)) return true;
  if (statSync(join(root, 'package-lock.json')).mtimeMs > statSync(installed).mtimeMs) return true;
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const names = Object.keys({ ...dependencies, ...devDependencies });
  return names.some((name) => !existsSync(join(root, 'node_modules', name, 'package.json')));
}

function install() {
  console.error('Installing packages …');
  // Development packages too, whatever NODE_ENV is: the compiler is one of them.
  const [command, ...args] = npmCommand(['ci', '--include=dev', '--no-audit', '--no-fund']);
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new Error(`Packages could not be installed${error ? `: ${error.message}` : ''}`);
  utimesSync(installed, new Date(), new Date());
}

/** The npm that runs us, where one does: the one on the path may be another. */
function npmCommand(args) {
  const running = process.env.npm_execpath;
  if (running?.endsWith('npm-cli.js')) return [process.execPath, running, ...args];
  return process.platform === 'win32' ? ['cmd.exe', '/c', 'npm', ...args] : ['npm', ...args];
}

asCommand(import.meta.url, ready);
