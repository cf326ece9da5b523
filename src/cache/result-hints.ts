import { GatewayError } from '../base/errors.js';
import { type Scope, scopeOf } from '../protocol/hints.js';
import type { CacheableMethod } from '../protocol/methods.js';
import { forEachMember, JsonError, type Span, stringAt } from '../wire/json.js';
import type { Message } from '../wire/message.js';

const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;

/** Members of a result that are for its receiver's cache, and the one that says what the result is. */
export type HintName = 'resultType' | 'ttlMs' | 'cacheScope';

/** What a complete result says of how it may be kept. */
export interface ResultHints {
  /** As the server sent it, ±Infinity where it is out of range; undefined where it is absent or no number. */
  readonly ttlMs: number | undefined;
  readonly scope: Scope;
  /** Undefined on the last page. */
  readonly nextCursor: string | undefined;
  /** Where the members stand that are there, whatever they hold. */
  readonly places: Readonly<Partial<Record<HintName, Span>>>;
}

/**
 * Reads the hints of a result without reading its items. Undefined: the result is none of the cache's business, for it
 * is not complete (`input_required` and its like). Throws GatewayError `server_protocol` when the result of a list
 * holds no list, or names a member twice so that agents could read it in different ways.
 * https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching
 */
export function readHints(
  serverId: string,
  method: string,
  { list }: CacheableMethod,
  { bytes, body }: Message,
): ResultHints | undefined {
  const members = body && membersOf(bytes, body);
  if (members) {
    const { resultType, ttlMs, cacheScope, nextCursor } = members;
    if (resultType && textAt(bytes, resultType) !== 'complete') return undefined;
    if (!list || isArray(bytes, members[list]))
      return {
        ttlMs: numberAt(bytes, ttlMs),
        scope: scopeOf(textAt(bytes, cacheScope)),
        nextCursor: textAt(bytes, nextCursor),
        places: members,
      };
  }
  if (!list) return undefined;
  throw new GatewayError(
    'server_protocol',
    `Server "${serverId}" answered ${method} without one array \`${list}\``,
    { serverId },
  );
}

type Name = HintName | 'nextCursor' | NonNullable<CacheableMethod['list']>;

const NAMES: ReadonlySet<string> = new Set<Name>([
  'resultType',
  'ttlMs',
  'cacheScope',
  'nextCursor',
  'tools',
  'prompts',
  'resources',
  'resourceTemplates',
]);

/** Where the members lie; undefined for a value that is no object or names one of its members twice. */
function membersOf(bytes: Buffer, at: Span): Partial<Record<Name, Span>> | undefined {
  if (bytes[at.start] !== OPEN_BRACE) return undefined;
  const found: Partial<Record<Name, Span>> = {};
  try {
    forEachMember(bytes, at.start, (name, start, end) => {
      if (NAMES.has(name)) found[name as Name] = { start, end };
    });
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
  return found;
}

function isArray(bytes: Buffer, span: Span | undefined): boolean {
  return span !== undefined && bytes[span.start] === OPEN_BRACKET;
}

function textAt(bytes: Buffer, span: Span | undefined): string | undefined {
  return span && bytes[span.start] === QUOTE ? stringAt(bytes, span.start, span.end) : undefined;
}

function numberAt(bytes: Buffer, span: Span | undefined): number | undefined {
  const first = span && bytes[span.start];
  const numeric = first !== undefined && (first === 0x2d || (first >= 0x30 && first <= 0x39));
  return numeric ? Number(bytes.toString('latin1', span?.start, span?.end)) : undefined;
}
