import { GatewayError } from '../base/errors.js';
import { METHOD_NOT_FOUND } from '../protocol/codes.js';
import { errorCodeOf } from '../wire/error-code.js';
import type { Message } from '../wire/message.js';
import { isModernCode } from './era-verdict.js';
import { InitializeRefused } from './handshake.js';
import { isRefused } from './refused.js';

/** Statuses with which servers of one era refuse what is said to them in the other. */
export const OTHER_ERA: ReadonlySet<number> = new Set([400, 404, 405, 406, 415]);

/**
 * Whether a legacy request may have been refused for its era: by a code of the other one, or by a status with which a
 * request is refused that lacks what each modern one brings. Nothing ran.
 */
export function showsAnotherEra(answer: Message): boolean {
  return isRefused(answer) && OTHER_ERA.has(answer.refusedWith);
}

/**
 * Whether a modern request was refused as a legacy server would: for want of a session, or for what it does not know. A
 * method that is not there is refused so by modern servers too.
 */
export function mayBeOfLegacy(answer: Message): boolean {
  if (!isRefused(answer) || !OTHER_ERA.has(answer.refusedWith)) return false;
  const code = errorCodeOf(answer);
  return !isModernCode(code) && code !== METHOD_NOT_FOUND;
}

/** Whether no session could be begun, and not for a reason that a legacy server would have too. */
export function refusesSessions(failure: unknown): failure is GatewayError {
  if (failure instanceof InitializeRefused) return true;
  if (!(failure instanceof GatewayError) || failure.code !== 'server_unavailable') return false;
  const { status } = failure.details;
  return status !== undefined && OTHER_ERA.has(status);
}
