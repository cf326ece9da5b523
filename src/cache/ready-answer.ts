import type { Scope } from '../protocol/hints.js';
import { member, type Span, splice } from '../wire/json.js';
import { type MemberChanges, memberEdits } from '../wire/members.js';
import { type Message, readMessage } from '../wire/message.js';

/** What an answer says of its own freshness when it leaves; undefined: nothing. */
export interface Hints {
  readonly scope: Scope;
}

const NO_HOLE: Span = { start: 0, end: 0 };

/**
 * An answer that is ready to leave but for the id of its request and, where it has hints, the milliseconds that remain
 * of it.
 */
export class ReadyAnswer {
  readonly #message: Message;
  /** Where the remaining time stands; undefined where none is told. */
  readonly #ttl: Span | undefined;

  /** `result` says what becomes of the answer's hints. */
  constructor(answer: Message, result: { readonly tell: Hints | undefined; readonly modern: boolean }) {
    const at = answer.body?.start ?? 0;
    const edits = memberEdits(answer.bytes, at, changesFor(result.tell, result.modern));
    this.#message = edits.length === 0 ? answer : readMessage(splice(answer.bytes, edits));
    this.#ttl = result.tell && member(this.#message.bytes, this.#message.body?.start ?? 0, 'ttlMs');
  }

  /** The whole answer for one request; `id` is JSON text. */
  leave(id: string, remainingMs: number): Message {
    const { bytes, idSpan = NO_HOLE, body = NO_HOLE } = this.#message;
    const ttl = this.#ttl && { span: this.#ttl, text: String(remainingMs) };
    const own = { span: idSpan, text: id };
    const holes = !ttl ? [own] : idSpan.start < ttl.span.start ? [own, ttl] : [ttl, own];
    const grown = (at: number) =>
      holes.reduce((sum, { span, text }) => (span.end <= at ? sum + growthOf(span, text) : sum), 0);
    return {
      ...this.#message,
      id,
      bytes: filled(bytes, holes),
      idSpan: { start: idSpan.start + grown(idSpan.start), end: idSpan.end + grown(idSpan.end) },
      body: { start: body.start + grown(body.start), end: body.end + grown(body.end) },
    };
  }
}

interface Hole {
  readonly span: Span;
  readonly text: string;
}

function changesFor(tell: Hints | undefined, modern: boolean): MemberChanges {
  const resultType = modern ? { resultType: '"complete"' } : {};
  const gone = modern ? [] : ['resultType'];
  if (!tell) return { remove: [...gone, 'ttlMs', 'cacheScope'] };
  return { remove: gone, set: { ...resultType, ttlMs: '0', cacheScope: JSON.stringify(tell.scope) } };
}

/** Of JSON text that holds ASCII only, or an id as its agent spelled it. */
function growthOf({ start, end }: Span, text: string): number {
  return Buffer.byteLength(text) - (end - start);
}

/** A copy of `bytes` with each hole's text in its place; holes in their order. */
function filled(bytes: Buffer, holes: readonly Hole[]): Buffer {
  const size = holes.reduce((sum, { span, text }) => sum + growthOf(span, text), bytes.length);
  const copy = Buffer.allocUnsafe(size);
  let from = 0;
  let to = 0;
  for (const { span, text } of holes) {
    to += bytes.copy(copy, to, from, span.start);
    to += copy.write(text, to);
    from = span.end;
  }
  bytes.copy(copy, to, from);
  return copy;
}
