import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder that holds package.json. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Runs `work` if the module at `url` is the command that was given to Node; its failure is one line on stderr. */
export function asCommand(url, work) {
  const command = process.argv[1];
  if (command === undefined || realpathSync(command) !== fileURLToPath(url)) return;
  try {
    work(process.argv.slice(2));
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
