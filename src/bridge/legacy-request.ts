import { sha256Hex } from '../base/hash.js';
import {
  CLIENT_CAPABILITIES_META,
  CLIENT_INFO_META,
  LOG_LEVEL_META,
  PROTOCOL_VERSION_META,
} from '../protocol/meta.js';
import { valueAt } from '../wire/json.js';
import { memberEdits } from '../wire/members.js';
import type { Message } from '../wire/message.js';
import { edited } from './edited.js';
import { isObject, paramOf } from './members.js';

const ENVELOPE = [PROTOCOL_VERSION_META, CLIENT_INFO_META, CLIENT_CAPABILITIES_META, LOG_LEVEL_META];
const INPUTS = ['inputResponses', 'requestState'];
/** 2026-07-28 ignores `task`; to a legacy server it would be a wish. */
const OF_CALLS = [...INPUTS, 'task'];

/** A modern request as a legacy server understands it: without what only the newer revision knows. */
export function legacyRequest(message: Message): Message {
  const { bytes, params } = message;
  if (!params) return message;
  const meta = paramOf(message, '_meta');
  const below = isObject(message, meta) ? memberEdits(bytes, meta.start, { remove: ENVELOPE }) : [];
  const remove = message.method === 'tools/call' ? OF_CALLS : INPUTS;
  const edits = [...memberEdits(bytes, params.start, { remove }), ...below];
  return edited(message, edits);
}

/** The same for every spelling of the same request, whoever sends it and with whatever inputs. */
export function digestOf({ bytes, params }: Message): string {
  const given = (params ? valueAt(bytes, params) : {}) as Record<string, unknown>;
  const { _meta, inputResponses, requestState, ...rest } = given;
  return sha256Hex(canonical(rest));
}

/** JSON-like text with sorted names. Not recursive: nesting is bounded by the request's size alone. */
function canonical(whole: unknown): string {
  const text: string[] = [];
  const left: (Punctuation | { readonly value: unknown })[] = [{ value: whole }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (typeof next === 'string') text.push(next);
    else if (Array.isArray(next.value)) {
      text.push('[');
      left.push(']');
      for (const value of next.value.toReversed()) left.push(',', { value });
    } else if (typeof next.value === 'object' && next.value !== null) {
      text.push('{');
      left.push('}');
      for (const [name, value] of sortedDown(next.value)) left.push(',', { value }, ':', { value: name });
    } else text.push(JSON.stringify(next.value));
  }
  return text.join('');
}

function sortedDown(object: object): [string, unknown][] {
  return Object.entries(object).sort(([a], [b]) => (a < b ? 1 : -1));
}

type Punctuation = ']' | '}' | ',' | ':';
