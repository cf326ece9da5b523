import { access } from 'node:fs/promises';
import { resolve } from 'node:path';
import { configPathFromEnv } from './env.js';
import type { Environment } from './expand.js';

export const CONFIG_FILE_NAME = 'sidegate.json';

/** Where a configuration comes from. */
export type Source =
  | { readonly kind: 'file'; readonly path: string }
  /** One server behind a URL; header values and the URL may hold `${NAME}`. */
  | { readonly kind: 'remote'; readonly url: string; readonly headers: Readonly<Record<string, string>> }
  /** One server that is a command; nothing in it is expanded, the shell has done so. */
  | { readonly kind: 'command'; readonly command: string; readonly args: readonly string[] }
  | { readonly kind: 'embedded' };

/**
 * The source where the command line names no server: the file of `--config`, else that of the environment, else
 * `sidegate.json` in the working directory if it is there, else the embedded configuration. Paths are made absolute.
 */
export async function findSource(
  flag: string | undefined,
  env: Environment,
  cwd: string = process.cwd(),
): Promise<Source> {
  const named = flag ?? configPathFromEnv(env);
  const path = resolve(cwd, named ?? CONFIG_FILE_NAME);
  return named !== undefined || (await exists(path)) ? { kind: 'file', path } : { kind: 'embedded' };
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}
