import { INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND } from '../protocol/codes.js';
import { errorCodeOf } from '../wire/error-code.js';
import { memberEdits } from '../wire/members.js';
import type { Message } from '../wire/message.js';
import { edited } from './edited.js';
import { bodyOf, isObject } from './members.js';

/** Codes that 2026-07-28 keeps for what it defines itself; a legacy server means something else by them. */
const RESERVED_FROM = -32020;
const RESERVED_TO = -32099;

/**
 * A legacy server's answer as 2026-07-28 has it: results say that they are complete, and a code that has gone, or has
 * another meaning now, is replaced.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes
 */
export function modernAnswer(answer: Message): Message {
  if (answer.kind === 'error') return modernError(answer);
  const { body } = answer;
  if (!isObject(answer, body) || bodyOf(answer, 'resultType')) return answer;
  return edited(answer, memberEdits(answer.bytes, body.start, { set: { resultType: '"complete"' } }));
}

function modernError(answer: Message): Message {
  const code = modernCode(errorCodeOf(answer));
  const span = code === undefined ? undefined : bodyOf(answer, 'code');
  return span ? edited(answer, [{ ...span, text: String(code) }]) : answer;
}

/** The code that takes the place of another; undefined where it may stay. */
function modernCode(code: number | undefined): number | undefined {
  if (code === RESOURCE_NOT_FOUND) return INVALID_PARAMS;
  return code !== undefined && code <= RESERVED_FROM && code >= RESERVED_TO ? INTERNAL_ERROR : undefined;
}
