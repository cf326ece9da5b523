import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { stop } from './processes.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const startTimeoutMs = 30_000;

export interface RunningGateway {
  /** The MCP endpoint. */
  readonly url: string;
  close(): Promise<void>;
}

/** Starts the built gateway as a user would, with the arguments of its command line. */
export async function startGateway(args: readonly string[], logFile: string): Promise<RunningGateway> {
  const child = spawn(process.execPath, ['dist/cli/main.js', ...args], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stderr.pipe(createWriteStream(logFile));
  try {
    const base = await firstUrl(child);
    return { url: `${base}/mcp`, close: () => stop(child) };
  } catch (error) {
    await stop(child);
    throw new Error(`the gateway ${error instanceof Error ? error.message : error}, see ${logFile}`);
  }
}

function firstUrl(child: ChildProcessByStdio<null, Readable, Readable>): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (reason: string) => reject(new Error(reason));
    createInterface({ input: child.stdout }).once('line', (line) => {
      const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? [];
      if (url) resolve(url);
      else fail(`began with "${line}" instead of its URL`);
    });
    child.once('error', (error) => fail(`did not start: ${error.message}`));
    child.once('exit', (code) => fail(`ended with ${code}`));
    setTimeout(() => fail(`said nothing for ${startTimeoutMs} ms`), startTimeoutMs).unref();
  });
}
