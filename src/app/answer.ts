import { GatewayError } from '../base/errors.js';
import { INVALID_PARAMS } from '../protocol/codes.js';
import { valueAt } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';
import type { Page } from './walk.js';

/** A server's own JSON-RPC error: its code, message and data as they came. */
export class ServerError extends Error {
  override readonly name = 'ServerError';
  /** Configured id of the server that sent it. */
  readonly serverId: string;
  readonly code: number;
  readonly data: unknown;

  constructor(serverId: string, code: number, message: string, data: unknown) {
    super(message);
    this.serverId = serverId;
    this.code = code;
    this.data = data;
  }
}

/** The `result` of an answer, parsed anew: whoever gets it may change it. Throws ServerError for an error. */
export function resultOf(answer: Message, serverId: string): unknown {
  if (!answer.body) throw malformed(serverId, 'answered nothing');
  const value = valueAt(answer.bytes, answer.body);
  if (answer.kind === 'result') return value;
  const { code, message, data } = value as { code?: unknown; message?: unknown; data?: unknown };
  throw new ServerError(
    serverId,
    typeof code === 'number' ? code : 0,
    typeof message === 'string' ? message : 'no message',
    data,
  );
}

/** The `params` of a notification, parsed. Its bytes may have been edited, so that its ranges no longer hold. */
export function paramsOf({ bytes }: Message): unknown {
  const { params } = readMessage(bytes);
  return params && valueAt(bytes, params);
}

/** A result that has to be an object. Throws GatewayError `server_protocol`. */
export function objectOf<T extends object>(result: unknown, serverId: string, method: string): T {
  if (typeof result === 'object' && result !== null && !Array.isArray(result)) return result as T;
  throw malformed(serverId, `answered ${method} with something else than an object`);
}

/** One page of a list whose items are in `member`. Throws GatewayError `server_protocol`. */
export function pageOf(result: unknown, serverId: string, method: string, member: string): Page {
  const { [member]: items, nextCursor } = objectOf<Record<string, unknown>>(result, serverId, method);
  if (!Array.isArray(items)) throw malformed(serverId, `answered ${method} without an array \`${member}\``);
  return { items, nextCursor: typeof nextCursor === 'string' ? nextCursor : undefined };
}

/** Whether this is how a server refuses a cursor. */
export function refusesCursor(failure: unknown): boolean {
  return failure instanceof ServerError && failure.code === INVALID_PARAMS;
}

function malformed(serverId: string, what: string): GatewayError {
  return new GatewayError('server_protocol', `Server "${serverId}" ${what}`, { serverId });
}
