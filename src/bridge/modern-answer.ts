import { INVALID_PARAMS, RESOURCE_NOT_FOUND } from '../protocol/codes.js';
import { errorCodeOf } from '../wire/error-code.js';
import { splice } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';
import { bodyOf, changedAt, isObject } from './members.js';

/**
 * A legacy server's answer as 2026-07-28 has it: results say that they are complete, and a code that has gone is replaced
 * by the one that took its place.
 */
export function modernAnswer(answer: Message): Message {
  if (answer.kind === 'error') return modernError(answer);
  const { body } = answer;
  if (!isObject(answer, body) || bodyOf(answer, 'resultType')) return answer;
  return changedAt(answer, body.start, { set: { resultType: '"complete"' } });
}

function modernError(answer: Message): Message {
  const code = errorCodeOf(answer) === RESOURCE_NOT_FOUND ? bodyOf(answer, 'code') : undefined;
  if (!code) return answer;
  return readMessage(splice(answer.bytes, [{ ...code, text: String(INVALID_PARAMS) }]));
}
