import type { Exchange } from '../pipeline/exchange.js';
import type { CacheableMethod } from '../protocol/methods.js';
import { forEachMember, JsonError, stringAt } from '../wire/json.js';
import type { Message } from '../wire/message.js';

const OPEN_BRACE = 0x7b;
const QUOTE = 0x22;

/** Variant of a request without a cursor. */
export const FIRST_PAGE = '';

/** Variant of a request for the page or the resource of that name. An empty cursor is a cursor. */
export function variantNamed(name: string): string {
  return `=${name}`;
}

/** The name in a variant; undefined for the first page. */
export function nameOf(variant: string): string | undefined {
  return variant === FIRST_PAGE ? undefined : variant.slice(1);
}

/**
 * What of its params changes a request's result, as one part of a key; undefined where the cache must stay out of it:
 * a member that it does not know may change the result, and so may a known one of another type.
 */
export function variantOf(
  { bytes, params }: Message,
  { params: known }: CacheableMethod,
): string | undefined {
  const wanted = known[0];
  let variant: string | undefined = wanted === 'uri' ? undefined : FIRST_PAGE;
  if (!params) return variant;
  if (bytes[params.start] !== OPEN_BRACE) return undefined;
  let understood = true;
  try {
    forEachMember(bytes, params.start, (name, start, end) => {
      if (name === '_meta') return;
      if (name === wanted && bytes[start] === QUOTE) variant = variantNamed(stringAt(bytes, start, end));
      else understood = false;
    });
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
  return understood ? variant : undefined;
}

/**
 * Store key of a list's first page at a place; with a variant behind it, that of any other page. A server id holds no
 * control character and a fingerprint is JSON text, so neither reaches past its line; a place may hold anything.
 */
export function walkKey({ era, serverId, agent }: Exchange, method: string, place: string): string {
  return `${era} ${method} ${serverId}\n${agent.profile.fingerprint}\n${place.length} ${place}`;
}
