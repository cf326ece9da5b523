import type { Source } from './find.js';

/** Programs that run another one, which is what the server should be called after. */
const RUNNERS = new Set([
  'npx',
  'uvx',
  'bunx',
  'node',
  'python',
  'python3',
  'deno',
  'bun',
  'tsx',
  'sh',
  'bash',
]);

/**
 * Id of the one server that a command line names: the host of its URL, or the name of its program or package. Always
 * a valid id.
 */
export function serverNameOf(source: Extract<Source, { kind: 'remote' | 'command' }>): string {
  if (source.kind === 'remote') return idFrom(URL.canParse(source.url) ? new URL(source.url).hostname : '');
  const program = baseName(source.command);
  const inner = RUNNERS.has(program) ? source.args.find((arg) => !arg.startsWith('-')) : undefined;
  return idFrom(inner === undefined ? program : baseName(inner));
}

/** `@scope/server-files@1.2.0` and `./dist/server-files.js` are both `server-files`. */
function baseName(path: string): string {
  const last = path.split(/[\\/]/).at(-1) ?? '';
  return last.replace(/(?<=.)@.*$/, '').replace(/\.(exe|cmd|[cm]?[jt]s|py)$/i, '');
}

function idFrom(name: string): string {
  const id = name.replaceAll(/[^\w.-]+/g, '-').slice(0, 64);
  return /\w/.test(id) ? id : 'server';
}
