import { type Edit, type Span, splice } from '../wire/json.js';
import type { Message } from '../wire/message.js';

/**
 * A message with edits within its `params` or its body. It is not read again, however large it is: the texts of the edits
 * must be JSON in their places.
 */
export function edited(message: Message, edits: readonly Edit[]): Message {
  if (edits.length === 0) return message;
  const { idSpan, params, body } = message;
  return {
    ...message,
    bytes: splice(message.bytes, edits),
    idSpan: idSpan && moved(idSpan, edits),
    params: params && moved(params, edits),
    body: body && moved(body, edits),
  };
}

/** Where a range is after edits before it or within it. */
function moved({ start, end }: Span, edits: readonly Edit[]): Span {
  let [by, grown] = [0, 0];
  for (const edit of edits) {
    const more = Buffer.byteLength(edit.text) - (edit.end - edit.start);
    if (edit.start < start) by += more;
    else if (edit.start < end) grown += more;
  }
  return { start: start + by, end: end + by + grown };
}
