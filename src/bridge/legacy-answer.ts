import { GatewayError } from '../base/errors.js';
import {
  HEADER_MISMATCH,
  INTERNAL_ERROR,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_PROTOCOL_VERSION,
} from '../protocol/codes.js';
import { errorCodeOf } from '../wire/error-code.js';
import { splice } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';
import { bodyOf, changedAt, isObject, stringIn, textOf } from './members.js';

/** What a modern server's result is: the word in its `resultType`. */
export function resultTypeOf(answer: Message): string | undefined {
  if (answer.kind !== 'result' || !isObject(answer, answer.body)) return undefined;
  const span = bodyOf(answer, 'resultType');
  return span && (stringIn(answer, span) ?? textOf(answer, span));
}

/**
 * A modern server's answer as legacy revisions have it. Throws GatewayError `server_protocol` for a kind of result that
 * cannot be told to a legacy agent.
 */
export function legacyAnswer(answer: Message, serverId: string): Message {
  if (answer.kind === 'error') return legacyError(answer, serverId);
  const type = resultTypeOf(answer);
  if (type === undefined || !answer.body) return answer;
  if (type === 'complete') return changedAt(answer, answer.body.start, { remove: ['resultType'] });
  const what = `Server "${serverId}" answered with a result of type ${JSON.stringify(type.slice(0, 50))}`;
  throw new GatewayError('server_protocol', `${what}, which its agent's revision does not have`, {
    serverId,
  });
}

/** Codes that no legacy revision has: the first and the last are the gateway's own affair. */
const MODERN_ONLY: ReadonlySet<number | undefined> = new Set([
  HEADER_MISMATCH,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_PROTOCOL_VERSION,
]);

function legacyError(answer: Message, serverId: string): Message {
  if (!MODERN_ONLY.has(errorCodeOf(answer))) return answer;
  const code = bodyOf(answer, 'code');
  const message = bodyOf(answer, 'message');
  const said = stringIn(answer, message) ?? '';
  const why = JSON.stringify(`Server "${serverId}" refused the request: ${said}`);
  const edits = [
    ...(code ? [{ ...code, text: String(INTERNAL_ERROR) }] : []),
    ...(message ? [{ ...message, text: why }] : []),
  ];
  return readMessage(splice(answer.bytes, edits));
}
