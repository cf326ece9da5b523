import { type Edit, member, type Span, splice } from '../wire/json.js';
import { idEdit, type Message } from '../wire/message.js';

/** The members of a message that the gateway owns on a shared link, and what stands in their place on each side. */

/** Range of `params._meta.progressToken`. */
export function progressTokenOf(message: Message): Span | undefined {
  return mentions(message, 'progressToken') ? paramOf(message, '_meta', 'progressToken') : undefined;
}

/** Range of a member of `params`, however deep. */
export function paramOf(message: Message, ...path: string[]): Span | undefined {
  return message.params && member(message.bytes, message.params.start, ...path);
}

/** JSON text of a range. */
export function textOf(message: Message, span: Span): string {
  return message.bytes.toString('utf8', span.start, span.end);
}

/** The string at a member of `params`, or undefined where there is none. */
export function stringParam(message: Message, ...path: string[]): string | undefined {
  const span = paramOf(message, ...path);
  return span && asString(message, span);
}

/** The string at a member of `result` or `error`, or undefined where there is none. */
export function stringInBody(message: Message, ...path: string[]): string | undefined {
  const span = message.body && member(message.bytes, message.body.start, ...path);
  return span && asString(message, span);
}

function asString(message: Message, span: Span): string | undefined {
  return message.bytes[span.start] === 0x22 ? (JSON.parse(textOf(message, span)) as string) : undefined;
}

/**
 * False only where no member of that name can be, however it is spelled: saves a scan of large params. The name holds one
 * slash at most.
 */
export function mentions({ bytes }: Message, name: string): boolean {
  const escaped = name.replace('/', '\\/');
  return (
    bytes.includes(`"${name}"`) ||
    (escaped !== name && bytes.includes(`"${escaped}"`)) ||
    escapesPartOf(bytes, name)
  );
}

/** Escapes looked at before a scan of the whole is the cheaper way to know. */
const MAX_ESCAPES = 1_000;

/** Whether an escape may stand for a character of the name, which is ASCII: texts in other scripts are full of others. */
function escapesPartOf(bytes: Buffer, name: string): boolean {
  const codes = new Set(Buffer.from(name));
  let left = MAX_ESCAPES;
  for (let at = bytes.indexOf('\\u00'); at >= 0; at = bytes.indexOf('\\u00', at + 4)) {
    const code = hexDigit(bytes[at + 4]) * 16 + hexDigit(bytes[at + 5]);
    if (codes.has(code) || --left === 0) return true;
  }
  return false;
}

/** Of a byte that is one. */
function hexDigit(byte = 0): number {
  return byte <= 0x39 ? byte - 0x30 : (byte | 0x20) - 0x57;
}

/** A request as it goes to the other side: with our id, and our progress token where the sender gave one. */
export function withIdAndToken(
  message: Message,
  id: string,
  token: Span | undefined,
  ourToken: string,
): Message {
  const edits = token ? [idEdit(message, id), { ...token, text: ourToken }] : [idEdit(message, id)];
  return { ...edited(message, edits), id };
}

/** A message with one range replaced. */
export function withText(message: Message, span: Span, text: string): Message {
  return edited(message, [{ ...span, text }]);
}

/**
 * The message that the edits make. Kind and method stay; ranges other than those of the bytes are not carried over, as
 * an edited message is only sent.
 */
function edited(message: Message, edits: readonly Edit[]): Message {
  return {
    ...message,
    bytes: splice(message.bytes, edits),
    idSpan: undefined,
    params: undefined,
    body: undefined,
  };
}
