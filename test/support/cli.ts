import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { builtFolder } from './built.js';

const resolve = createRequire(import.meta.url).resolve;

/** Command lines of real servers, to stand behind `--` or in a configuration. */
export const EVERYTHING = [
  process.execPath,
  resolve('@modelcontextprotocol/server-everything/dist/index.js'),
  'stdio',
] as const;
export const FILESYSTEM = [
  process.execPath,
  resolve('@modelcontextprotocol/server-filesystem/dist/index.js'),
] as const;

/** A command line as an entry of `mcpServers`. */
export function entryOf([command = '', ...args]: readonly string[]): { command: string; args: string[] } {
  return { command, args };
}

export interface CliOptions {
  readonly cwd?: string;
  /** Besides PATH and HOME nothing else is in the environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

export interface CliResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

type CliProcess = ChildProcessByStdio<Writable, Readable, Readable>;

/** The program as a child of its own, stopped after the test at the latest. */
export function spawnCli(t: TestContext, args: readonly string[], options: CliOptions = {}): CliProcess {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, [join(builtFolder(), 'dist', 'cli', 'main.js'), ...args], {
    cwd: options.cwd ?? '/',
    env: { PATH, HOME, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  return child;
}

/** Runs the program to its end. */
export async function runCli(
  t: TestContext,
  args: readonly string[],
  options: CliOptions = {},
): Promise<CliResult> {
  const child = spawnCli(t, args, options);
  child.stdin.on('error', () => {});
  child.stdin.end(options.input ?? '');
  const [stdout, stderr, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>,
  ]);
  return { code, signal, stdout, stderr };
}

/** A gateway that runs, and what it has said so far. */
export class ServingCli {
  readonly child: CliProcess;
  readonly #out: Lines;
  readonly #err: Lines;

  constructor(child: CliProcess) {
    this.child = child;
    this.#out = new Lines(child.stdout);
    this.#err = new Lines(child.stderr);
  }

  /** The next line of stdout that matches, those that came before this call included. */
  stdoutLine(pattern: RegExp): Promise<string> {
    return this.#out.find(pattern);
  }

  stderrLine(pattern: RegExp): Promise<string> {
    return this.#err.find(pattern);
  }

  get stdout(): readonly string[] {
    return this.#out.all;
  }

  get stderr(): readonly string[] {
    return this.#err.all;
  }

  /** Address of the gateway. */
  async url(): Promise<string> {
    const line = await this.stdoutLine(/^Sidegate listens on /);
    return line.slice('Sidegate listens on '.length);
  }

  async exit(): Promise<Pick<CliResult, 'code' | 'signal'>> {
    const { exitCode, signalCode } = this.child;
    if (exitCode === null && signalCode === null) await once(this.child, 'exit');
    return { code: this.child.exitCode, signal: this.child.signalCode };
  }
}

export function serveCli(t: TestContext, args: readonly string[], options: CliOptions = {}): ServingCli {
  return new ServingCli(spawnCli(t, args, options));
}

/** Lines of a stream, kept. */
class Lines {
  readonly all: string[] = [];
  readonly #reader: Interface;

  constructor(stream: Readable) {
    this.#reader = createInterface({ input: stream });
    this.#reader.on('line', (line) => this.all.push(line));
  }

  /** Rejects when the stream ends without such a line. */
  find(pattern: RegExp): Promise<string> {
    const known = this.all.find((line) => pattern.test(line));
    if (known !== undefined) return Promise.resolve(known);
    return new Promise((found, failed) => {
      const look = (line: string) => {
        if (!pattern.test(line)) return;
        this.#reader.off('line', look).off('close', ended);
        found(line);
      };
      const ended = () => failed(new Error(`no line matches ${pattern} in:\n${this.all.join('\n')}`));
      this.#reader.on('line', look).once('close', ended);
    });
  }
}
