import {
  HEADER_MISMATCH,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_PROTOCOL_VERSION,
} from '../protocol/codes.js';
import { errorCodeOf } from '../wire/error-code.js';
import type { Message } from '../wire/message.js';
import { misbehaved } from './faults.js';
import { bodyOf, changedAt, isObject, stringIn, textOf } from './members.js';

/** What a modern server's result is: the word in its `resultType`. */
export function resultTypeOf(answer: Message): string | undefined {
  if (answer.kind !== 'result') return undefined;
  const span = bodyOf(answer, 'resultType');
  return span && (stringIn(answer, span) ?? textOf(answer, span));
}

/**
 * A modern server's answer as legacy revisions have it; `set` are members of its result that must be other ones. Throws
 * GatewayError `server_protocol` for a kind of result that cannot be told to a legacy agent.
 */
export function legacyAnswer(
  answer: Message,
  serverId: string,
  set: Readonly<Record<string, string>> = {},
): Message {
  if (answer.kind === 'error') return legacyError(answer, serverId);
  const type = resultTypeOf(answer);
  if (type !== undefined && type !== 'complete')
    throw misbehaved(
      serverId,
      `answered with a result of type ${JSON.stringify(type.slice(0, 50))}, which its agent's revision does not have`,
    );
  if (!isObject(answer, answer.body)) return answer;
  return changedAt(answer, answer.body.start, { remove: ['resultType'], set });
}

/** What becomes of codes that no legacy revision has: an agent can mend its capabilities, but not what the gateway sends. */
const MODERN_ONLY: ReadonlyMap<number | undefined, number> = new Map([
  [HEADER_MISMATCH, INTERNAL_ERROR],
  [MISSING_CLIENT_CAPABILITY, INVALID_PARAMS],
  [UNSUPPORTED_PROTOCOL_VERSION, INTERNAL_ERROR],
]);

function legacyError(answer: Message, serverId: string): Message {
  const given = errorCodeOf(answer);
  const code = MODERN_ONLY.get(given);
  if (code === undefined || !answer.body) return answer;
  const [message, data] = [bodyOf(answer, 'message'), bodyOf(answer, 'data')];
  const said = stringIn(answer, message);
  const why =
    code === INVALID_PARAMS
      ? `Server "${serverId}" needs a capability that its agent did not declare`
      : `Server "${serverId}" refused what the gateway sent`;
  const set = {
    code: String(code),
    message: JSON.stringify(said ? `${why}: ${said}` : why),
    data: dataOf(serverId, given, message && textOf(answer, message), data && textOf(answer, data)),
  };
  return changedAt(answer, answer.body.start, { set });
}

/** The server's own error, as it spelled it, below a name that says whose it is. */
function dataOf(serverId: string, code: number | undefined, message?: string, data?: string): string {
  const members = [
    `"code":${code}`,
    ...(message === undefined ? [] : [`"message":${message}`]),
    ...(data === undefined ? [] : [`"data":${data}`]),
  ];
  return `{"server":${JSON.stringify(serverId)},"error":{${members.join(',')}}}`;
}
