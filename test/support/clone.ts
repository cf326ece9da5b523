import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { repository } from './repository.js';

/** What a finished process left. */
export interface Outcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * A small project with this one's scripts and installed packages: the packages are links, all else is its own.
 * `npm` in it is a stand-in that notes its arguments and says them aloud.
 */
export class Clone {
  readonly folder = mkdtempSync(join(tmpdir(), 'sidegate-clone-'));

  constructor() {
    for (const name of ['.ci', 'package.json', 'package-lock.json', 'tsconfig.json'])
      cpSync(join(repository, name), this.path(name), { recursive: true });
    this.write('src/index.ts', 'export {};\n');
    this.write('npm-cli.js', STAND_IN);
    this.link();
  }

  path(...names: string[]): string {
    return join(this.folder, ...names);
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(this.path(path)), { recursive: true });
    writeFileSync(this.path(path), text);
  }

  /** Puts the packages in place, as a finished installation does. */
  link(): void {
    const packages = join(repository, 'node_modules');
    mkdirSync(this.path('node_modules'), { recursive: true });
    for (const name of readdirSync(packages))
      if (!name.startsWith('.')) symlinkSync(join(packages, name), this.path('node_modules', name));
    this.write('node_modules/.package-lock.json', '{}');
  }

  start(command: string, args: readonly string[], variables: NodeJS.ProcessEnv = {}): ChildProcess {
    const env: NodeJS.ProcessEnv = { ...process.env, npm_execpath: this.path('npm-cli.js'), ...variables };
    // A test runner below a test runner would report to the upper one.
    delete env['NODE_TEST_CONTEXT'];
    return spawn(command, args, { cwd: this.folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** Runs one of the scripts in `.ci` to its end. */
  async run(
    script: string,
    args: readonly string[] = [],
    variables: NodeJS.ProcessEnv = {},
  ): Promise<Outcome> {
    return outcomeOf(this.start(process.execPath, [`.ci/${script}`, ...args], variables));
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export async function outcomeOf(child: ChildProcess): Promise<Outcome> {
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
    });
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, ...texts };
}

const STAND_IN = `
import { writeFileSync } from 'node:fs';
console.log('npm was asked: ' + process.argv.slice(2).join(' '));
if (process.env.NPM_FAILS) process.exit(1);
writeFileSync('node_modules/.package-lock.json', '{}');
`;
