import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';

const killAfterMs = 5_000;
const standardError = 2;

export interface RunOptions {
  readonly timeoutMs: number;
  /** Receives all that the command prints; without one it goes to standard error, as standard output is for results. */
  readonly logFile?: string;
  /** For commands that on Windows are scripts. */
  readonly shell?: boolean;
}

/** Runs a command to its end and returns its exit code; `null` when a signal, or the time limit, ended it. */
export async function runToEnd(
  command: string,
  args: readonly string[],
  { timeoutMs, logFile, shell = false }: RunOptions,
): Promise<number | null> {
  const log = logFile === undefined ? undefined : await open(logFile, 'w');
  try {
    const child = spawn(command, args, {
      stdio: ['ignore', log?.fd ?? standardError, log?.fd ?? standardError],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      shell,
    });
    const [code] = (await once(child, 'close')) as [number | null];
    return code;
  } finally {
    await log?.close();
  }
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  const timer = setTimeout(() => child.kill('SIGKILL'), killAfterMs);
  child.kill('SIGTERM');
  await exited;
  clearTimeout(timer);
}
