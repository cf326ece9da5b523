import { SUBSCRIPTION_ID_META } from '../protocol/meta.js';

/**
 * The response that ends a subscription gently. `id` is the request's, as JSON text.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#graceful-closure
 */
export function listenEnd(id: string): Buffer {
  const meta = `{${JSON.stringify(SUBSCRIPTION_ID_META)}:${id}}`;
  return Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","_meta":${meta}}}`);
}
