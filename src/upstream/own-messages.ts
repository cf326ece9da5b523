import { notification } from '../protocol/compose.js';
import { type Message, readMessage } from '../wire/message.js';
import { paramOf, withText } from './rewrite.js';

/** Messages that a connection sends on the gateway's own account. `wireId` is a number of ours as JSON text. */

/** `params` is JSON text. */
export function ownRequest(wireId: string, method: string, params: string): Message {
  const head = `{"jsonrpc":"2.0","id":${wireId},"method":${JSON.stringify(method)}`;
  return readMessage(Buffer.from(`${head},"params":${params}}`));
}

/** The agent's own cancellation where it sent one (its reason and `_meta` kept), else ours; with the server's id. */
export function cancellation(wireId: string, reason: unknown): Message {
  const given = reason as Message | undefined;
  const span = given?.bytes && paramOf(given, 'requestId');
  if (given && span) return withText(given, span, wireId);
  return withdrawal(wireId, 'Nobody waits for the answer');
}

export function withdrawal(wireId: string, reason: string): Message {
  return notification('notifications/cancelled', { requestId: Number(wireId), reason });
}
