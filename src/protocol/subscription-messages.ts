import { JsonError, member, splice } from '../wire/json.js';
import { memberEdits } from '../wire/members.js';
import { type Message, readMessage } from '../wire/message.js';
import { SUBSCRIPTION_ID_META } from './meta.js';
import { type Filter, filterText } from './subscription-filter.js';

const OPEN_BRACE = 0x7b;

/**
 * What stands on a subscription's stream; `id` is the JSON text of the id of the request that opened it.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
 */

/** The first message: what is honoured. `others`: JSON text of an object with members of the filter unknown here. */
export function acknowledgement(id: string, honoured: Filter, others = '{}'): Message {
  const members = [filterText(honoured), others].map((text) => text.slice(1, -1).trim()).filter(Boolean);
  const params = `{"_meta":${stampOf(id)},"notifications":{${members.join(',')}}}`;
  const head = '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":';
  return readMessage(Buffer.from(`${head}${params}}`));
}

/** A notification with the subscription's id in `_meta`; other bytes stay. Throws JsonError where it cannot have one. */
export function stamped({ bytes, params }: Message, id: string): Message {
  const meta = params && member(bytes, params.start, '_meta');
  const stamp = { [SUBSCRIPTION_ID_META]: id };
  const edits =
    meta && bytes[meta.start] === OPEN_BRACE
      ? memberEdits(bytes, meta.start, { set: stamp })
      : params
        ? memberEdits(bytes, params.start, { set: { _meta: stampOf(id) } })
        : memberEdits(bytes, 0, { set: { params: `{"_meta":${stampOf(id)}}` } });
  return readMessage(splice(bytes, edits));
}

/** Throws JsonError for a notification that cannot be stamped: so that nobody finds out later. */
export function checkStampable({ bytes, params }: Message): void {
  if (!params) return;
  if (bytes[params.start] !== OPEN_BRACE) throw new JsonError('Expected an object', params.start);
  member(bytes, params.start, '_meta', SUBSCRIPTION_ID_META);
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
