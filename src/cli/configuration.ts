import { environment } from '../config/env.js';
import { findSource } from '../config/find.js';
import { type LoadResult, loadConfig } from '../config/load.js';
import { didYouMean } from '../config/nearest.js';
import type { Selection } from './args.js';
import { complain } from './terminal.js';
import { UsageError } from './usage.js';

export type Loaded = Extract<LoadResult, { ok: true }> & {
  /** True when nothing was configured and the bundled server stands in. */
  readonly embedded: boolean;
};

/**
 * The configuration that a command line means, or undefined after its problems were told. A server that the command
 * line itself names must be usable; of a file's servers each is on its own.
 */
export async function configurationOf(selection: Selection): Promise<Loaded | undefined> {
  const env = environment();
  const source = selection.source ?? (await findSource(selection.config, env));
  const result = await loadConfig({ source, flags: selection.flags, env });
  const single = source.kind === 'remote' || source.kind === 'command';
  const problems = result.ok
    ? result.config.disabled.flatMap((server) => (single ? server.problems : []))
    : result.problems;
  if (result.ok && problems.length === 0) return { ...result, embedded: source.kind === 'embedded' };
  for (const line of [...result.warnings, ...problems]) complain(line);
  return undefined;
}

/** The server that is meant: the one named, else the only one. Throws UsageError. */
export function serverIdOf({ config, off, origin }: Loaded, named: string | undefined): string {
  const ids = idsOf(config);
  const all = ids.map((id) => JSON.stringify(id)).join(', ');
  if (named === undefined) {
    const [only, second] = ids;
    if (only !== undefined && second === undefined) return only;
    if (only === undefined) throw new UsageError(`There is no server in ${origin}`);
    throw new UsageError(`Say which server by --server: there are ${all}`);
  }
  if (ids.includes(named)) return named;
  if (off.includes(named))
    throw new UsageError(`Server ${JSON.stringify(named)} is switched off in ${origin}`);
  const guess = didYouMean(named, ids);
  throw new UsageError(
    `There is no server ${JSON.stringify(named)}${guess || `; there is ${all || 'none'}`}`,
  );
}

/** Every server's id, unusable ones too. */
export function idsOf(config: Loaded['config']): string[] {
  return [...config.servers, ...config.disabled].map(({ id }) => id);
}
