import type { RawEntry } from './document.js';
import { type Environment, expandValue } from './expand.js';
import { didYouMean } from './nearest.js';
import { oncePerPlace, type Path, type Problem, problemLine, problemsOf } from './problems.js';
import { type Entry, entrySchema, MAX_REQUEST_TIMEOUT_MS } from './schema.js';
import { type TargetResult, targetKind, targetOf } from './target.js';
import type { DisabledServer, ServerConfig } from './types.js';

/** What became of one entry: a server, one that is unusable and why, or one that the operator switched off. */
export type EntryOutcome =
  | { readonly kind: 'server'; readonly server: ServerConfig; readonly warnings: readonly string[] }
  | { readonly kind: 'disabled'; readonly server: DisabledServer; readonly warnings: readonly string[] }
  | { readonly kind: 'off'; readonly id: string };

/** Checks one entry of `mcpServers`; `env` undefined leaves every `${…}` as it is. One bad entry costs no other. */
export function readEntry(raw: RawEntry, section: string, env: Environment | undefined): EntryOutcome {
  const at = [section, raw.id];
  const problems = idProblems(raw).map((message): Problem => ({ path: at, message }));
  const given = membersOf(raw.value);
  if (!given) return unusable(raw.id, [...problems, { path: at, message: 'must be an object' }], []);
  const expanded = env ? expandValue(given, env, at) : { value: given, problems: [] };
  const { entry, problems: misshapen } = parseMembers(expanded.value as Record<string, unknown>, at);
  if (entry.disabled || entry.enabled === false) return { kind: 'off', id: raw.id };
  problems.push(...expanded.problems, ...misshapen);
  const { kind, problems: unfit } = targetKind(given, at);
  const { target, problems: faults, warnings } = kind ? targetOf(entry, kind, at) : NO_TARGET;
  const { maxRequestTimeoutMs, problems: timing } = requestLimit(entry, at);
  problems.push(...unfit, ...faults, ...timing);
  const noted = [...unknownMembers(given, at), ...warnings.map(problemLine)];
  if (!target || problems.length > 0) return unusable(raw.id, problems, noted);
  return { kind: 'server', server: serverOf(raw.id, entry, target, maxRequestTimeoutMs), warnings: noted };
}

function serverOf(
  id: string,
  entry: Entry,
  target: ServerConfig['target'],
  maxRequestTimeoutMs: number,
): ServerConfig {
  return {
    id,
    target,
    isolate: entry.isolate,
    era: entry.era,
    toolListTtlMs: entry.toolListTtlMs,
    sharePublic: entry.sharePublic,
    connectTimeoutMs: entry.connectTimeoutMs,
    requestTimeoutMs: entry.requestTimeoutMs,
    maxRequestTimeoutMs,
    maxConnections: entry.maxConnections,
  };
}

const NO_TARGET: TargetResult = { target: undefined, problems: [], warnings: [] };

/** Every well-formed member; what is wrong with the others. */
function parseMembers(value: Record<string, unknown>, at: Path): { entry: Entry; problems: Problem[] } {
  const parsed = entrySchema.safeParse(value);
  if (parsed.success) return { entry: parsed.data, problems: [] };
  const bad = new Set(parsed.error.issues.map((issue) => issue.path[0]));
  const rest = Object.fromEntries(Object.entries(value).filter(([key]) => !bad.has(key)));
  return { entry: entrySchema.parse(rest), problems: problemsOf(parsed.error.issues, at) };
}

function requestLimit(entry: Entry, at: Path): { maxRequestTimeoutMs: number; problems: Problem[] } {
  const { requestTimeoutMs } = entry;
  const maxRequestTimeoutMs = entry.maxRequestTimeoutMs ?? Math.max(MAX_REQUEST_TIMEOUT_MS, requestTimeoutMs);
  if (maxRequestTimeoutMs >= requestTimeoutMs) return { maxRequestTimeoutMs, problems: [] };
  const path = [...at, 'maxRequestTimeoutMs'];
  return { maxRequestTimeoutMs, problems: [{ path, message: 'must not be below `requestTimeoutMs`' }] };
}

function unusable(id: string, problems: readonly Problem[], warnings: readonly string[]): EntryOutcome {
  return { kind: 'disabled', server: { id, problems: oncePerPlace(problems).map(problemLine) }, warnings };
}

/** The members of an entry; `null` stands for a member left out, as other tools write it. */
function membersOf(value: unknown): Record<string, unknown> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== null));
}

const MAX_ID_LENGTH = 128;

/** An id stands in a URL path and in the pool's keys. */
function idProblems({ id, problem }: RawEntry): string[] {
  const problems = problem === undefined ? [] : [problem];
  if (id === '') problems.push('a server id must not be empty');
  if (id.length > MAX_ID_LENGTH)
    problems.push(`a server id must not be longer than ${MAX_ID_LENGTH} characters`);
  if (id === '.' || id === '..') problems.push('a server id must not be a path step');
  if (/[\p{Cc}\p{Cs}#/]/u.test(id)) problems.push('a server id must not hold `#`, `/` or control characters');
  return problems;
}

function unknownMembers(given: Readonly<Record<string, unknown>>, at: Path): string[] {
  const known = Object.keys(entrySchema.shape);
  return Object.keys(given)
    .filter((key) => !known.includes(key))
    .map((key) =>
      problemLine({ path: [...at, key], message: `is unknown and ignored${didYouMean(key, known)}` }),
    );
}
