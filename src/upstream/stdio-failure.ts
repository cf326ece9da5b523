import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { GatewayError } from '../base/errors.js';

/** How a child ended: one of the two is set. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const NO_ROOM = new Set(['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM']);

/**
 * Why a program could not be started, and what to do about it. What Node threw is not kept as the cause: it holds the
 * arguments, and those may hold secrets.
 */
export async function spawnFailure(
  serverId: string,
  command: string,
  cwd: string | undefined,
  thrown: unknown,
): Promise<GatewayError> {
  const code = (thrown as NodeJS.ErrnoException).code ?? 'unknown error';
  const why = (cwd !== undefined && (await directoryProblem(cwd))) || commandProblem(command, code);
  return unavailable(serverId, `could not be started: ${why}`);
}

/** The system reports a bad working directory with the codes of a bad command. */
async function directoryProblem(cwd: string): Promise<string | undefined> {
  const named = `its working directory "${cwd}"`;
  try {
    if (!(await stat(cwd)).isDirectory()) return `${named} is not a directory. Correct "cwd".`;
    await access(cwd, constants.X_OK);
    return undefined;
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return missing
      ? `${named} does not exist. Create it, or correct "cwd".`
      : `${named} cannot be entered. Give the gateway's user the right to, or correct "cwd".`;
  }
}

function commandProblem(command: string, code: string): string {
  const named = `command "${command}"`;
  if (code === 'ENOENT' || code === 'ENOTDIR')
    return `${named}, or the interpreter that its first line names, was not found. Install it, or give its full path.`;
  if (code === 'EACCES' || code === 'EPERM')
    return `${named} may not be executed. Give the gateway's user the right to (chmod +x), or correct "command".`;
  if (NO_ROOM.has(code))
    return `the system has no room for another process (${code}) to run ${named}. Raise its limits, or run fewer servers.`;
  if (code === 'E2BIG') return `the arguments and environment of ${named} are too long. Shorten them.`;
  return `${named} failed (${code}). Correct "command", "args" or "env".`;
}

/** The predicate of a sentence whose subject is the server. */
export function howItEnded(exit: Exit): string {
  return exit.signal === null ? `exited with code ${exit.code}` : `was ended by ${exit.signal}`;
}

/** `what` completes a sentence whose subject is the server; `tail` is the end of its stderr, empty where there is none. */
export function unavailable(serverId: string, what: string, tail = ''): GatewayError {
  const lastWords = tail === '' ? '' : `; its last words: ${tail}`;
  return new GatewayError('server_unavailable', `Server "${serverId}" ${what}${lastWords}`, { serverId });
}
