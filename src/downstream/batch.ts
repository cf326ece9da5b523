import { items, JsonError, skipSpace, skipValue } from '../wire/json.js';
import { type Message, MessageError, readMessage } from '../wire/message.js';

/** The one revision that has batches. */
export const BATCH_REVISION = '2025-03-26';

/** Messages of one batch; more are refused before any of them runs. */
const MAX_BATCH = 100;

/**
 * The messages of a batch, in order. All of them are read before any runs: one that is malformed refuses the batch.
 * Throws MessageError.
 * https://modelcontextprotocol.io/specification/2025-03-26/basic#batching
 */
export function readBatch(bytes: Buffer): Message[] {
  const spans = spansOf(bytes);
  if (spans.length === 0) throw new MessageError('The batch is empty', false);
  if (spans.length > MAX_BATCH)
    throw new MessageError(`The batch has more than ${MAX_BATCH} messages`, false);
  const messages = spans.map(({ start, end }) => readMessage(bytes.subarray(start, end)));
  if (messages.some((message) => message.method === 'initialize'))
    throw new MessageError('`initialize` must not be part of a batch', false);
  return messages;
}

function spansOf(bytes: Buffer) {
  const start = skipSpace(bytes, 0);
  try {
    if (skipSpace(bytes, skipValue(bytes, start)) !== bytes.length)
      throw new MessageError('Text after the batch', true);
    return items(bytes, start) ?? [];
  } catch (error) {
    if (error instanceof JsonError) throw new MessageError(error.message, true);
    throw error;
  }
}
