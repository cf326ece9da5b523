import { readFile } from 'node:fs/promises';
import { type RawDocument, type RawEntry, readDocument } from './document.js';
import { embeddedDocument } from './embedded.js';
import { type EntryOutcome, readEntry } from './entry.js';
import { environment, mistypedVariables } from './env.js';
import type { Environment } from './expand.js';
import type { Source } from './find.js';
import { ConfigSyntaxError } from './jsonc.js';
import { type Flags, readSettings } from './settings.js';
import { serverNameOf } from './single-server.js';
import type { DisabledServer, GatewayConfig, ServerConfig } from './types.js';

export interface LoadOptions {
  readonly source: Source;
  readonly flags?: Flags;
  readonly env?: Environment;
}

/** A configuration that can be run. Warnings are one line each and hold no secret. */
export interface LoadedConfig {
  readonly config: GatewayConfig;
  readonly warnings: readonly string[];
  /** Ids that the operator switched off; they are served as if they were not there. */
  readonly off: readonly string[];
}

/** A configuration, or every reason why there is none. `origin`: path of the file, or what stands in its place. */
export type LoadResult =
  | (LoadedConfig & { readonly ok: true; readonly origin: string })
  | (Failure & { readonly origin: string });

interface Failure {
  readonly ok: false;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** A configuration of which nothing can be run. The message lists every problem. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`The configuration is unusable: ${problems.join('; ')}`);
    this.problems = problems;
  }
}

/**
 * Reads, expands and checks a configuration. A bad server lands in `disabled` with its problems; a file that cannot be
 * read and a bad general setting are the end, with all of them reported. Never throws for what an operator wrote.
 */
export async function loadConfig(options: LoadOptions): Promise<LoadResult> {
  const { source, flags = {}, env = environment() } = options;
  const origin = originOf(source);
  const document = await documentOf(source);
  if (typeof document === 'string') return { ok: false, origin, problems: [document], warnings: [] };
  const expansion = source.kind === 'command' ? undefined : env;
  return { ...assemble(document, expansion, env, flags), origin };
}

/** The same for a value in the shape of `sidegate.json`. Throws ConfigError. */
export function parseConfig(value: object, env: Environment = environment()): LoadedConfig {
  const result = assemble(documentFrom(value), env, env, {});
  if (!result.ok) throw new ConfigError(result.problems);
  return result;
}

function documentFrom(value: object): RawDocument {
  try {
    return readDocument(Buffer.from(JSON.stringify(value)));
  } catch (error) {
    throw error instanceof ConfigSyntaxError ? new ConfigError([error.message]) : error;
  }
}

function assemble(
  document: RawDocument,
  expansion: Environment | undefined,
  env: Environment,
  flags: Flags,
): (LoadedConfig & { readonly ok: true }) | Failure {
  const { settings, problems, warnings: noted } = readSettings(document.settings, env, flags);
  const entries = document.servers ?? [];
  const outcomes = entries.map((entry) => readEntry(entry, document.serversKey, expansion));
  const warnings = [...mistypedVariables(env), ...noted, ...outcomes.flatMap(warningsOf)];
  const missing = document.servers ? [] : [`${document.serversKey}: is missing`];
  if (!settings || missing.length > 0) return { ok: false, problems: [...problems, ...missing], warnings };
  if (entries.length === 0) warnings.push(`${document.serversKey}: holds no server`);
  const config: GatewayConfig = {
    ...settings,
    servers: outcomes.flatMap((outcome): ServerConfig[] =>
      outcome.kind === 'server' ? [outcome.server] : [],
    ),
    disabled: outcomes.flatMap((outcome): DisabledServer[] =>
      outcome.kind === 'disabled' ? [outcome.server] : [],
    ),
  };
  const off = outcomes.flatMap((outcome) => (outcome.kind === 'off' ? [outcome.id] : []));
  return { ok: true, config, warnings, off };
}

function warningsOf(outcome: EntryOutcome): readonly string[] {
  return outcome.kind === 'off' ? [] : outcome.warnings;
}

/** A string is the reason why it cannot be read. */
async function documentOf(source: Source): Promise<RawDocument | string> {
  switch (source.kind) {
    case 'file':
      return fileDocument(source.path);
    case 'embedded':
      return embeddedDocument();
    case 'remote':
    case 'command': {
      const { kind, ...value } = source;
      const servers: RawEntry[] = [{ id: serverNameOf(source), value, problem: undefined }];
      return { serversKey: kind, servers, settings: new Map() };
    }
  }
}

async function fileDocument(path: string): Promise<RawDocument | string> {
  try {
    return readDocument(await readFile(path));
  } catch (error) {
    if (error instanceof ConfigSyntaxError) return `${path}:${error.line}:${error.column}: ${error.message}`;
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return code === 'ENOENT' ? `${path}: there is no such file` : `${path}: cannot be read (${code})`;
  }
}

function originOf(source: Source): string {
  if (source.kind === 'file') return source.path;
  return source.kind === 'embedded' ? 'the embedded configuration' : 'the command line';
}
