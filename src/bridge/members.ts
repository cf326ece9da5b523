import { member, type Span, splice, stringAt } from '../wire/json.js';
import { type MemberChanges, memberEdits } from '../wire/members.js';
import { type Message, readMessage } from '../wire/message.js';

const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;

/** JSON text of a range of a message. */
export function textOf({ bytes }: Message, span: Span): string {
  return bytes.toString('utf8', span.start, span.end);
}

/** Range of a member of `params`, or of what is below it. */
export function paramOf({ bytes, params }: Message, ...path: string[]): Span | undefined {
  return params && member(bytes, params.start, ...path);
}

/** Range of a member of `result` or `error`, or of what is below it. */
export function bodyOf({ bytes, body }: Message, ...path: string[]): Span | undefined {
  return body && member(bytes, body.start, ...path);
}

/** The string in a range; undefined where there is none, or another value. */
export function stringIn({ bytes }: Message, span: Span | undefined): string | undefined {
  return span && bytes[span.start] === QUOTE ? stringAt(bytes, span.start, span.end) : undefined;
}

export function isObject({ bytes }: Message, span: Span | undefined): span is Span {
  return span !== undefined && bytes[span.start] === OPEN_BRACE;
}

/** The message with other members in the object at `at`. */
export function changedAt(message: Message, at: number, changes: MemberChanges): Message {
  const edits = memberEdits(message.bytes, at, changes);
  return edits.length === 0 ? message : readMessage(splice(message.bytes, edits));
}
