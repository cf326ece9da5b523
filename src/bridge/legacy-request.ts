import { sha256Hex } from '../base/hash.js';
import {
  CLIENT_CAPABILITIES_META,
  CLIENT_INFO_META,
  LOG_LEVEL_META,
  PROTOCOL_VERSION_META,
} from '../protocol/meta.js';
import { splice, valueAt } from '../wire/json.js';
import { memberEdits } from '../wire/members.js';
import { type Message, readMessage } from '../wire/message.js';
import { isObject, paramOf } from './members.js';

const ENVELOPE = [PROTOCOL_VERSION_META, CLIENT_INFO_META, CLIENT_CAPABILITIES_META, LOG_LEVEL_META];
const INPUTS = ['inputResponses', 'requestState'];

/** A modern request as a legacy server understands it: without what only the newer revision knows. */
export function legacyRequest(message: Message): Message {
  const { bytes, params } = message;
  if (!params) return message;
  const meta = paramOf(message, '_meta');
  const below = isObject(message, meta) ? memberEdits(bytes, meta.start, { remove: ENVELOPE }) : [];
  const edits = [...memberEdits(bytes, params.start, { remove: INPUTS }), ...below];
  return edits.length === 0 ? message : readMessage(splice(bytes, edits));
}

/** The same for every spelling of the same request, whoever sends it and with whatever inputs. */
export function digestOf({ bytes, params }: Message): string {
  const given = (params ? valueAt(bytes, params) : {}) as Record<string, unknown>;
  const { _meta, inputResponses, requestState, ...rest } = given;
  return sha256Hex(canonical(rest));
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, item]) => `${JSON.stringify(name)}:${canonical(item)}`).join()}}`;
}
