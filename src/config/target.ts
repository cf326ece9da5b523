import { checkHeaders, hasHeader } from './headers.js';
import type { Path, Problem } from './problems.js';
import type { Entry } from './schema.js';
import type { RemoteTarget, StdioTarget } from './types.js';

/** Where an entry leads; undefined together with at least one problem. */
export interface TargetResult {
  readonly target: StdioTarget | RemoteTarget | undefined;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

const URL_KEYS = ['url', 'serverUrl', 'httpUrl'] as const;
const STDIO_KEYS = ['command', 'args', 'env', 'cwd'] as const;
const REMOTE_KEYS = [...URL_KEYS, 'headers', 'forwardAuthorization'] as const;

/** Whether an entry is a command or a URL, judged by the members that it has; problems where it is both or neither. */
export function targetKind(
  given: Readonly<Record<string, unknown>>,
  at: Path,
): { kind: 'stdio' | 'remote' | undefined; problems: readonly Problem[] } {
  const types = ['type', 'transport'].map((key) => given[key]).filter((type) => type !== undefined);
  const stdio = types.length > 0 ? types.some(isStdio) : undefined;
  const urls = URL_KEYS.filter((key) => key in given);
  const fail = (message: string) => ({ kind: undefined, problems: [{ path: at, message }] });
  if (urls.length > 1) return fail(`has ${urls.join(' and ')}: give one of them`);
  const hasCommand = 'command' in given;
  if (!hasCommand && urls.length === 0) return fail('needs a `command` or a `url`');
  if (stdio === undefined && hasCommand && urls.length > 0)
    return fail('has a `command` and a URL: give one of them, or say which by `type`');
  const kind = (stdio ?? hasCommand) ? 'stdio' : 'remote';
  if (kind === 'stdio' && !hasCommand) return fail('is of type stdio and has no `command`');
  if (kind === 'remote' && urls.length === 0) return fail('is of a remote type and has no `url`');
  return { kind, problems: [] };
}

function isStdio(type: unknown): boolean {
  return typeof type === 'string' && type.trim().toLowerCase() === 'stdio';
}

/** Builds the target of an entry whose members are each well-formed. */
export function targetOf(entry: Entry, kind: 'stdio' | 'remote', at: Path): TargetResult {
  const idle = kind === 'stdio' ? REMOTE_KEYS : STDIO_KEYS;
  const warnings = idle
    .filter((key) => entry[key] !== undefined)
    .map((key) => ({ path: [...at, key], message: `has no meaning for a ${kind} server` }));
  const result = kind === 'stdio' ? stdioTarget(entry, at) : remoteTarget(entry, at);
  return { ...result, warnings: [...warnings, ...result.warnings] };
}

function stdioTarget(entry: Entry, at: Path): TargetResult {
  const env = entry.env ?? {};
  const problems = Object.keys(env)
    .filter((name) => name === '' || /[=\0]/.test(name))
    .map((name) => ({ path: [...at, 'env', name], message: 'is not a variable name' }));
  if (entry.command === undefined || problems.length > 0)
    return { target: undefined, problems, warnings: [] };
  const target: StdioTarget = {
    kind: 'stdio',
    command: entry.command,
    args: entry.args ?? [],
    env,
    cwd: entry.cwd,
  };
  return { target, problems: [], warnings: [] };
}

function remoteTarget(entry: Entry, at: Path): TargetResult {
  const key = URL_KEYS.find((name) => entry[name] !== undefined) ?? 'url';
  const address = splitUrl(entry[key]);
  const checked = checkHeaders(entry.headers ?? {}, [...at, 'headers']);
  const problems = [...checked.problems];
  if (typeof address === 'string') problems.push({ path: [...at, key], message: address });
  const transports = new Set([entry.type, entry.transport].filter((name) => name !== undefined));
  if (transports.size > 1) problems.push({ path: [...at, 'transport'], message: 'contradicts `type`' });
  if (typeof address !== 'object' || problems.length > 0)
    return { target: undefined, problems, warnings: checked.warnings };
  const named = hasHeader(checked.headers, 'authorization');
  const own: Record<string, string> =
    address.authorization === undefined || named ? {} : { Authorization: address.authorization };
  const headers = { ...checked.headers, ...own };
  const [transport = 'auto'] = transports;
  const target: RemoteTarget = {
    kind: 'remote',
    url: address.url,
    transport: transport === 'stdio' ? 'auto' : transport,
    headers,
    forwardAuthorization: entry.forwardAuthorization ?? !hasHeader(headers, 'authorization'),
  };
  return { target, problems: [], warnings: checked.warnings };
}

interface Address {
  readonly url: string;
  readonly authorization: string | undefined;
}

/**
 * A URL without fragment and user, and the `Authorization` that the user stands for: HTTP clients drop it from a URL
 * in silence. A string is what is wrong; it quotes nothing, for a query may hold a key.
 */
function splitUrl(text: string | undefined): Address | string | undefined {
  if (text === undefined) return undefined;
  if (!URL.canParse(text)) return 'is not an absolute URL';
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must be an http or https URL';
  let credentials: string;
  try {
    credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  } catch {
    return 'has a user name or password that is not percent-encoded';
  }
  url.username = '';
  url.password = '';
  url.hash = '';
  const authorization =
    credentials === ':' ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`;
  return { url: url.href, authorization };
}
