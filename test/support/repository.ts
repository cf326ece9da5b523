import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder that holds package.json. */
export const repository = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Text of a file, by its path from the repository's top with forward slashes. */
export function readText(path: string): string {
  return readFileSync(join(repository, path), 'utf8');
}

/** Paths from the repository's top, sorted, of the files below `folder`; installed packages are left out. */
export function filesBelow(folder: string): string[] {
  const entries = readdirSync(join(repository, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(repository, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((path) => !path.includes('node_modules/'))
    .sort();
}
