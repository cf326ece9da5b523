import { forEachMember, JsonError, type Span, skipSpace, valueAt } from '../wire/json.js';
import { placed, strictJson } from './jsonc.js';

/** One entry below `mcpServers`, in the order of the file. */
export interface RawEntry {
  readonly id: string;
  readonly value: unknown;
  /** Set where the entry itself names one member twice. */
  readonly problem: string | undefined;
}

/** A configuration as it was written: nothing checked but that it is JSON. */
export interface RawDocument {
  /** `mcpServers`, or `servers` as VS Code calls it. */
  readonly serversKey: string;
  /** Undefined where there is no such member. */
  readonly servers: readonly RawEntry[] | undefined;
  /** Every other top-level member. */
  readonly settings: ReadonlyMap<string, unknown>;
}

const SERVER_KEYS = ['mcpServers', 'servers'];

/**
 * Reads the bytes of a configuration file. Throws ConfigSyntaxError where the text is no object of JSON, repeats a
 * setting or a server id, or gives the servers twice.
 */
export function readDocument(source: Buffer): RawDocument {
  const bytes = strictJson(source);
  try {
    return read(bytes);
  } catch (error) {
    throw error instanceof JsonError ? placed(error, source) : error;
  }
}

function read(bytes: Buffer): RawDocument {
  const settings = new Map<string, unknown>();
  let found: { key: string; span: Span } | undefined;
  forEachMember(bytes, skipSpace(bytes, 0), (name, start, end) => {
    if (!SERVER_KEYS.includes(name)) {
      settings.set(name, valueAt(bytes, { start, end }));
      return;
    }
    if (found) throw new JsonError('`mcpServers` and `servers` are one setting: give one of them', start);
    found = { key: name, span: { start, end } };
  });
  if (!found) return { serversKey: 'mcpServers', servers: undefined, settings };
  return { serversKey: found.key, servers: readEntries(bytes, found.key, found.span), settings };
}

function readEntries(bytes: Buffer, key: string, span: Span): RawEntry[] {
  if (bytes[span.start] !== 0x7b)
    throw new JsonError(`\`${key}\` must be an object of server id to entry`, span.start);
  const entries: RawEntry[] = [];
  forEachMember(bytes, span.start, (id, start, end) => {
    entries.push({ id, value: valueAt(bytes, { start, end }), problem: repeatedMember(bytes, start) });
  });
  return entries;
}

function repeatedMember(bytes: Buffer, at: number): string | undefined {
  if (bytes[at] !== 0x7b) return undefined;
  try {
    forEachMember(bytes, at, () => {});
    return undefined;
  } catch (error) {
    if (error instanceof JsonError) return error.message.replace(/ at byte \d+$/, '');
    throw error;
  }
}
