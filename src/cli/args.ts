import { didYouMean } from '../config/nearest.js';
import type { SettingKey } from '../config/schema.js';
import { type Flags, flagOf, flagProblem } from '../config/settings.js';
import { type OptionName, type ParsedLine, parseLine } from './options.js';
import { UsageError } from './usage.js';

/** The servers that a command line speaks of, and the settings that it gives. */
export interface Selection {
  /** Undefined: the configuration file is looked for. */
  readonly source:
    | { readonly kind: 'remote'; readonly url: string; readonly headers: Readonly<Record<string, string>> }
    | { readonly kind: 'command'; readonly command: string; readonly args: readonly string[] }
    | undefined;
  readonly config: string | undefined;
  readonly flags: Flags;
  readonly server: string | undefined;
}

export type Command =
  | { readonly name: 'help' | 'version' }
  | { readonly name: 'serve'; readonly selection: Selection; readonly stdio: boolean }
  | {
      readonly name: 'tools';
      readonly selection: Selection;
      readonly fresh: boolean;
      readonly json: boolean;
    }
  | {
      readonly name: 'call';
      readonly selection: Selection;
      readonly tool: string;
      /** JSON text of the arguments, or `-` for stdin. */
      readonly input: string | undefined;
    }
  | { readonly name: 'check'; readonly selection: Selection };

type Verb = 'serve' | 'tools' | 'call' | 'check';

const COMMON: readonly OptionName[] = ['config', 'log-level', 'header'];
const KNOWN: Readonly<Record<Verb, readonly OptionName[]>> = {
  serve: [...COMMON, 'host', 'port', 'stdio', 'server'],
  tools: [...COMMON, 'server', 'fresh', 'json'],
  call: [...COMMON, 'server'],
  check: COMMON,
};
const FLAG_SETTINGS: readonly SettingKey[] = ['host', 'port', 'logLevel'];

/** What a command line asks for. Throws UsageError; no value of a header is ever in its message. */
export function parseCommand(argv: readonly string[]): Command {
  const line = parseLine(argv);
  if (line.values.has('help')) return { name: 'help' };
  if (line.values.has('version')) return { name: 'version' };
  const urls = line.positionals.filter(isUrl);
  const [first, ...rest] = line.positionals.filter((word) => !isUrl(word));
  if (first === 'help' || first === 'version') return { name: first };
  const verb = first === undefined ? 'serve' : verbOf(first);
  checkFlags(line, verb);
  const selection = selectionOf(line, urls);
  switch (verb) {
    case 'serve':
      nothingMore(verb, rest);
      return serveCommand(line, selection);
    case 'check':
      nothingMore(verb, rest);
      return { name: 'check', selection };
    case 'tools':
      return toolsCommand(line, selection, rest);
    case 'call':
      return callCommand(selection, rest);
  }
}

function serveCommand(line: ParsedLine, selection: Selection): Command {
  const stdio = line.values.has('stdio');
  if (selection.server !== undefined && !stdio)
    throw new UsageError('--server goes with --stdio: over HTTP every server has its own endpoint');
  const { host, port } = selection.flags;
  if (stdio && (host ?? port) !== undefined)
    throw new UsageError('--stdio listens on no port: leave --host and --port out');
  return { name: 'serve', selection, stdio };
}

function toolsCommand(line: ParsedLine, selection: Selection, rest: readonly string[]): Command {
  const [server = selection.server, ...more] = rest;
  nothingMore('tools', more);
  if (selection.server !== undefined && server !== selection.server)
    throw new UsageError('Two servers are named: give one of them');
  const { values } = line;
  return {
    name: 'tools',
    selection: { ...selection, server },
    fresh: values.has('fresh'),
    json: values.has('json'),
  };
}

function callCommand(selection: Selection, rest: readonly string[]): Command {
  const [tool, input, ...more] = rest;
  if (tool === undefined) throw new UsageError('call needs the name of a tool');
  nothingMore('call', more);
  return { name: 'call', selection, tool, input };
}

function isUrl(word: string): boolean {
  return /^https?:\/\//i.test(word);
}

function verbOf(word: string): Verb {
  if (Object.hasOwn(KNOWN, word)) return word as Verb;
  if (/^(localhost|[\w-]+(\.[\w-]+)+)(:\d+)?(\/|$)/.test(word))
    throw new UsageError(`There is no command ${word}; a URL begins with http:// or https://`);
  throw new UsageError(`There is no command ${JSON.stringify(word)}${didYouMean(word, Object.keys(KNOWN))}`);
}

function checkFlags({ values }: ParsedLine, verb: Verb): void {
  for (const name of values.keys())
    if (!KNOWN[verb].includes(name)) throw new UsageError(`--${name} has no meaning for ${verb}`);
}

function nothingMore(verb: Verb, rest: readonly string[]): void {
  if (rest.length > 0) throw new UsageError(`${verb} does not take ${JSON.stringify(rest[0])}`);
}

function selectionOf(line: ParsedLine, urls: readonly string[]): Selection {
  const [url, second] = urls;
  if (second !== undefined) throw new UsageError('Several URLs are given: one is served at a time');
  const config = last(line, 'config');
  const named = [url && 'a URL', line.command && 'a command', config !== undefined && '--config'].filter(
    Boolean,
  );
  if (named.length > 1) throw new UsageError(`${named.join(' and ')} are given: they exclude each other`);
  const headers = headersOf(line.values.get('header') ?? []);
  if (url === undefined && Object.keys(headers).length > 0)
    throw new UsageError('--header goes with a URL; a configuration file has its own headers');
  const selection = { config, flags: flagsOf(line), server: last(line, 'server') };
  if (url !== undefined) return { ...selection, source: { kind: 'remote', url, headers } };
  if (!line.command) return { ...selection, source: undefined };
  const [command, ...args] = line.command;
  if (!command) throw new UsageError('-- needs a command behind it');
  return { ...selection, source: { kind: 'command', command, args } };
}

function flagsOf(line: ParsedLine): Flags {
  const flags: Partial<Record<SettingKey, string>> = {};
  for (const key of FLAG_SETTINGS) {
    const value = last(line, flagOf(key).slice(2) as OptionName);
    if (value === undefined) continue;
    const problem = flagProblem(key, value);
    if (problem !== undefined) throw new UsageError(problem);
    flags[key] = value;
  }
  return flags;
}

function headersOf(lines: readonly string[]): Record<string, string> {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = /^([^:\s]+)\s*:(.*)$/s.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new UsageError("--header is written 'Name: value'");
    if (headers.has(name)) throw new UsageError(`--header gives ${name} twice`);
    headers.set(name, value.trim());
  }
  return Object.fromEntries(headers);
}

function last(line: ParsedLine, name: OptionName): string | undefined {
  return line.values.get(name)?.at(-1);
}
