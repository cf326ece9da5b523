import { member, splice } from '../wire/json.js';
import { memberEdits } from '../wire/members.js';
import { type Message, readMessage } from '../wire/message.js';
import { SUBSCRIPTION_ID_META } from './meta.js';
import { type Filter, filterText } from './subscription-filter.js';

/**
 * What stands on a subscription's stream; `id` is the JSON text of the id of the request that opened it.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
 */

/** The first message: what is honoured. */
export function acknowledgement(id: string, honoured: Filter): Message {
  const params = `{"_meta":${stampOf(id)},"notifications":${filterText(honoured)}}`;
  const head = '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":';
  return readMessage(Buffer.from(`${head}${params}}`));
}

/** A notification with the subscription's id in `_meta`; other bytes stay. */
export function stamped({ bytes, params }: Message, id: string): Message {
  const meta = params && member(bytes, params.start, '_meta');
  const stamp = { [SUBSCRIPTION_ID_META]: id };
  const edits =
    meta && bytes[meta.start] === 0x7b
      ? memberEdits(bytes, meta.start, { set: stamp })
      : params
        ? memberEdits(bytes, params.start, { set: { _meta: stampOf(id) } })
        : memberEdits(bytes, 0, { set: { params: `{"_meta":${stampOf(id)}}` } });
  return readMessage(splice(bytes, edits));
}

/** The response that ends it gently. */
export function listenEnd(id: string): Buffer {
  return Buffer.from(
    `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","_meta":${stampOf(id)}}}`,
  );
}

function stampOf(id: string): string {
  return `{${JSON.stringify(SUBSCRIPTION_ID_META)}:${id}}`;
}
