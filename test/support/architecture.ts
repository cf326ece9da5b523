import { posix } from 'node:path';
import { type Import, readSource } from './source-text.js';

/** One file of src as the rules see it: `path` from the repository's top, forward slashes. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** Folders below the parts, lowest first, then what stands above them. Each imports only what is lower. */
const LOWER = ['base', 'wire', 'protocol', 'pipeline'];
const UPPER = ['app', 'cli'];

/** Packages and where they may be imported; one that is not named here may be imported nowhere. */
const PACKAGES: ReadonlyMap<string, readonly string[]> = new Map([
  ['undici', ['upstream']],
  ['lru-cache', ['cache', 'upstream']],
  ['pino', ['telemetry']],
  ['zod', ['config']],
  // Types of results for the library's users; its classes never stand on the path of a message.
  ['@modelcontextprotocol/sdk', ['app', 'cli']],
]);

/** Parts of Node that are a door to the outside, and who may open it. Others are free, and so are types. */
const BUILTINS: ReadonlyMap<string, readonly string[]> = new Map([
  ['node:child_process', ['upstream']],
  ['node:http', ['downstream']],
  ['node:https', []],
  ['node:timers', ['base']],
  ['node:timers/promises', ['base']],
]);

interface TextRule {
  readonly pattern: RegExp;
  readonly what: string;
  /** Paths, or folders ending in `/`, where it is allowed. */
  readonly allowed: readonly string[];
}

const TEXT_RULES: readonly TextRule[] = [
  { pattern: /\bprocess\.env\b/, what: 'process.env', allowed: ['src/config/env.ts'] },
  {
    pattern: /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.now\b|\bprocess\.(?:hrtime|uptime)\b/,
    what: 'the time of day',
    allowed: ['src/base/'],
  },
  {
    pattern:
      /(?<![.\w])(?:setTimeout|setInterval)\b|\bglobalThis\.set(?:Timeout|Interval)\b|\bAbortSignal\.timeout\b/,
    what: 'a timer',
    // While a child is being ended, an idle interval holds the process; it measures nothing.
    allowed: ['src/base/', 'src/upstream/child.ts'],
  },
  {
    pattern: /\bMath\.random\b|\brandom(?:Bytes|UUID|Int|FillSync)\b|\bgetRandomValues\b/,
    what: 'chance',
    allowed: ['src/base/'],
  },
  { pattern: /^export default\b|\bas default\b/m, what: 'a default export', allowed: [] },
  { pattern: /^(?:export\s+)?(?:let|var)\s/m, what: 'a module-level variable', allowed: [] },
  {
    pattern: /^(?:export\s+)?const [^=\n]*=\s*new (?:Map|Set|WeakMap|WeakSet|Array)(?:<[^;]*>)?\(\s*\);/m,
    what: 'module-level state to be filled later',
    // What is noted there of an error goes with the error, which undici hands through and nothing else.
    allowed: ['src/upstream/connector.ts'],
  },
  {
    // Under a name in capitals an empty object or list is a constant.
    pattern: /^(?:export\s+)?const (?=\w*[a-z])\w+\s*(?::[^=\n]*)?=\s*(?:\[\s*\]|\{\s*\});/m,
    what: 'module-level state to be filled later',
    allowed: [],
  },
  {
    pattern: /\bimport\.meta\.url\s*===|\brequire\.main\b/,
    what: 'a module that does more when run',
    allowed: [],
  },
];

/** What breaks the rules of the layout, one line each; empty where all is well. */
export function violations(files: readonly SourceFile[]): string[] {
  return [...files.flatMap(violationsOf), ...cycles(files)];
}

function violationsOf({ path, text }: SourceFile): string[] {
  const { code, comments, imports } = readSource(text);
  const found = [
    ...imports.map((entry) => importViolation(path, entry)),
    ...TEXT_RULES.filter(
      ({ pattern, allowed }) => pattern.test(code) && !allowed.some((at) => path.startsWith(at)),
    ).map(({ what }) => what),
    /\b(?:TO.?DO|FIX.?ME|XXX|HACK)\b/.test(comments) ? 'a note to oneself' : undefined,
    /(?:^|\/)(?:utils?|helpers?|common|misc|shared)(?:\/|\.ts$)/.test(path)
      ? 'a name that tells nothing'
      : undefined,
  ];
  return found.filter((what) => what !== undefined).map((what) => `${path}: ${what}`);
}

function importViolation(path: string, entry: Import): string | undefined {
  const { specifier } = entry;
  if (entry.sideEffect) return `imports ${specifier} for its side effects`;
  if (specifier.startsWith('.')) return layerViolation(path, specifier);
  const scope = folderOf(path);
  const allowed = specifier.startsWith('node:') ? mayOpen(entry) : (PACKAGES.get(packageOf(specifier)) ?? []);
  return allowed && !allowed.includes(scope) ? `${scope} may not import ${specifier}` : undefined;
}

function mayOpen({ specifier, typeOnly }: Import): readonly string[] | undefined {
  return typeOnly ? undefined : BUILTINS.get(specifier);
}

function layerViolation(path: string, specifier: string): string | undefined {
  const target = posix.join(posix.dirname(path), specifier);
  if (!target.startsWith('src/')) return `imports ${specifier} from outside src`;
  if (!target.endsWith('.js')) return `imports ${specifier} without its extension`;
  const [from, to] = [folderOf(path), folderOf(target)];
  if (from === to || rank(from) > rank(to)) return undefined;
  return `${from} may not import ${to} (${specifier})`;
}

/** `cache` of `src/cache/tiers/memory.ts`; `index` of `src/index.ts`. */
function folderOf(path: string): string {
  const [, folder = '', rest] = path.split('/');
  return rest === undefined ? folder.replace(/\.[jt]s$/, '') : folder;
}

/** The library's surface stands beside the command line: above everything, known to nobody. */
function rank(folder: string): number {
  if (folder === 'index') return LOWER.length + UPPER.length;
  const upper = UPPER.indexOf(folder);
  if (upper >= 0) return LOWER.length + 1 + upper;
  const lower = LOWER.indexOf(folder);
  return lower >= 0 ? lower : LOWER.length;
}

function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

/** Rings of files that need each other to be loaded; types do not count. */
function cycles(files: readonly SourceFile[]): string[] {
  const edges = new Map(files.map(({ path, text }) => [path, valueImports(path, text)]));
  const done = new Set<string>();
  const found: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path))
      found.push(`${[...trail.slice(trail.indexOf(path)), path].join(' → ')}: a ring`);
    if (done.has(path) || trail.includes(path)) return;
    for (const next of edges.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of edges.keys()) visit(path, []);
  return found;
}

function valueImports(path: string, text: string): string[] {
  return readSource(text)
    .imports.filter(({ specifier, typeOnly }) => specifier.startsWith('.') && !typeOnly)
    .map(({ specifier }) => posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts'));
}
