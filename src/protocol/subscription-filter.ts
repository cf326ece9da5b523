import { GatewayError } from '../base/errors.js';
import { JsonError, member, splice, valueAt } from '../wire/json.js';
import { memberEdits } from '../wire/members.js';
import type { Message } from '../wire/message.js';
import type { ListKind } from './methods.js';

/**
 * What a `subscriptions/listen` asks to hear of.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#notification-filter
 */
export interface Filter {
  readonly kinds: ReadonlySet<ListKind>;
  readonly uris: ReadonlySet<string>;
}

export const NOTHING: Filter = { kinds: new Set(), uris: new Set() };

const MEMBERS: readonly (readonly [string, ListKind])[] = [
  ['toolsListChanged', 'tools'],
  ['promptsListChanged', 'prompts'],
  ['resourcesListChanged', 'resources'],
];

const KNOWN = [...MEMBERS.map(([name]) => name), 'resourceSubscriptions'];

/** The filter in a request or an acknowledgement; undefined where it has none that can be read. */
export function readFilter(message: Message): Filter | undefined {
  try {
    const span = message.params && member(message.bytes, message.params.start, 'notifications');
    return span && filterOf(valueAt(message.bytes, span));
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}

/** What an agent asks for. */
export interface Wanted extends Filter {
  /** Members that are unknown here, see `otherMembers`. */
  readonly others: string | undefined;
}

/** The filter of an agent's request. Throws GatewayError `invalid_params`. */
export function wantedFilter(message: Message, serverId: string): Wanted {
  const filter = readFilter(message);
  if (filter) return { ...filter, others: othersOnce(message, serverId) };
  const what =
    '`notifications` must be an object of truth values and `resourceSubscriptions` a list of texts';
  throw new GatewayError('invalid_params', what, { serverId });
}

function othersOnce(message: Message, serverId: string): string | undefined {
  try {
    return otherMembers(message);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new GatewayError('invalid_params', `\`notifications\` is ambiguous: ${error.message}`, {
      serverId,
    });
  }
}

function filterOf(value: unknown): Filter | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const given = value as Record<string, unknown>;
  const uris = given['resourceSubscriptions'] ?? [];
  if (!Array.isArray(uris) || uris.some((uri) => typeof uri !== 'string')) return undefined;
  const flags = MEMBERS.map(([name]) => given[name] ?? false);
  if (flags.some((flag) => typeof flag !== 'boolean')) return undefined;
  const kinds = MEMBERS.filter(([name]) => given[name] === true).map(([, kind]) => kind);
  return { kinds: new Set(kinds), uris: new Set(uris as string[]) };
}

/**
 * JSON text of the filter in a message without the members that are known here, every byte of the others as it came;
 * undefined where there are no others. Throws JsonError for a member that is given twice.
 */
export function otherMembers({ bytes, params }: Message): string | undefined {
  const span = params && member(bytes, params.start, 'notifications');
  if (!span || bytes[span.start] !== 0x7b) return undefined;
  const filter = bytes.subarray(span.start, span.end);
  const text = splice(filter, memberEdits(filter, 0, { remove: KNOWN })).toString('utf8');
  return /^\{\s*\}$/.test(text) ? undefined : text;
}

/** JSON text of a filter. */
export function filterText({ kinds, uris }: Filter): string {
  const flags = MEMBERS.filter(([, kind]) => kinds.has(kind)).map(([name]) => [name, true] as const);
  const subscriptions = uris.size > 0 ? [['resourceSubscriptions', [...uris]] as const] : [];
  return JSON.stringify(Object.fromEntries([...flags, ...subscriptions]));
}

export function union(filters: Iterable<Filter>): Filter {
  const kinds = new Set<ListKind>();
  const uris = new Set<string>();
  for (const filter of filters) {
    for (const kind of filter.kinds) kinds.add(kind);
    for (const uri of filter.uris) uris.add(uri);
  }
  return { kinds, uris };
}

export function intersection(a: Filter, b: Filter): Filter {
  return {
    kinds: new Set([...a.kinds].filter((kind) => b.kinds.has(kind))),
    uris: new Set([...a.uris].filter((uri) => b.uris.has(uri))),
  };
}

/** Whether everything of `part` is in `whole`. */
export function covers(whole: Filter, part: Filter): boolean {
  return (
    [...part.kinds].every((kind) => whole.kinds.has(kind)) &&
    [...part.uris].every((uri) => whole.uris.has(uri))
  );
}

export function isEmpty({ kinds, uris }: Filter): boolean {
  return kinds.size === 0 && uris.size === 0;
}

/** Whether an update of a resource is news to who asked for `uris`: a server may name a part of what was asked for. */
export function concerns(uris: ReadonlySet<string>, updated: string): boolean {
  if (uris.has(updated)) return true;
  for (const uri of uris) if (isPartOf(updated, uri)) return true;
  return false;
}

/** Whether a resource is another one, or something in it. */
export function isPartOf(uri: string, whole: string): boolean {
  if (uri === whole) return true;
  return uri.startsWith(whole) && (whole.endsWith('/') || '/#?'.includes(uri[whole.length] ?? ' '));
}
