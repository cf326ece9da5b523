import { type Edit, type Span, splice } from '../wire/json.js';
import { type Message, withId } from '../wire/message.js';
import { hintEdits, movedBy, type Telling, timeHole } from './hint-edits.js';
import type { ResultHints } from './result-hints.js';

const NOWHERE: Span = { start: 0, end: 0 };

/**
 * A result that is ready to leave but for the id of its request and, where it tells one, the time that remains of it:
 * each time it leaves, one copy is made of it.
 */
export class ReadyAnswer {
  readonly #message: Message;
  readonly #timed: TimedTemplate | undefined;

  constructor(answer: Message, hints: ResultHints, telling: Telling) {
    const edits = hintEdits(answer.bytes, answer.body?.start ?? 0, hints, telling);
    this.#message = edits.length === 0 ? answer : edited(answer, edits);
    if (telling.scope !== undefined)
      this.#timed = new TimedTemplate(this.#message, timeHole(answer.body?.start ?? 0, hints, edits));
  }

  /** Whether it tells the time that remains. */
  get isTimed(): boolean {
    return this.#timed !== undefined;
  }

  /** The whole answer for one request. `id` is JSON text; `remainingMs` is whole. */
  leave(id: string, remainingMs: number): Message {
    if (this.#timed) return this.#timed.fill(id, String(remainingMs));
    if (id === this.#message.id) return this.#message;
    return { ...this.#message, ...idMoved(this.#message, id), id, bytes: withId(this.#message, id) };
  }
}

function edited(answer: Message, edits: readonly Edit[]): Message {
  const { bytes, idSpan = NOWHERE, body = NOWHERE } = answer;
  const moved = ({ start, end }: Span) => ({ start: movedBy(edits, start), end: movedBy(edits, end) });
  return { ...answer, bytes: splice(bytes, edits), idSpan: moved(idSpan), body: moved(body) };
}

function idMoved({ idSpan = NOWHERE, body = NOWHERE }: Message, id: string): { idSpan: Span; body: Span } {
  const end = idSpan.start + Buffer.byteLength(id);
  const by = idSpan.start < body.start ? end - idSpan.end : 0;
  return { idSpan: { start: idSpan.start, end }, body: { start: body.start + by, end: body.end + by } };
}

/** The bytes around two holes, of which the time is within the body and the id before or behind it. */
class TimedTemplate {
  readonly #head: Buffer;
  readonly #middle: Buffer;
  readonly #tail: Buffer;
  readonly #idFirst: boolean;
  readonly #id: Span;
  readonly #time: Span;
  readonly #body: Span;

  constructor({ bytes, idSpan = NOWHERE, body = NOWHERE }: Message, time: Span) {
    this.#idFirst = idSpan.start < time.start;
    const [first, second] = this.#idFirst ? [idSpan, time] : [time, idSpan];
    this.#head = bytes.subarray(0, first.start);
    this.#middle = bytes.subarray(first.end, second.start);
    this.#tail = bytes.subarray(second.end);
    this.#id = idSpan;
    this.#time = time;
    this.#body = body;
  }

  fill(id: string, time: string): Message {
    const idBytes = Buffer.byteLength(id);
    const [head, middle, tail] = [this.#head, this.#middle, this.#tail];
    const bytes = Buffer.allocUnsafe(head.length + middle.length + tail.length + idBytes + time.length);
    let at = head.copy(bytes);
    at += bytes.write(this.#idFirst ? id : time, at);
    at += middle.copy(bytes, at);
    at += bytes.write(this.#idFirst ? time : id, at);
    tail.copy(bytes, at);
    return { bytes, kind: 'result', method: '', id, params: undefined, ...this.#spans(idBytes, time.length) };
  }

  #spans(idBytes: number, timeBytes: number): { idSpan: Span; body: Span } {
    const idGrowth = idBytes - (this.#id.end - this.#id.start);
    const timeGrowth = timeBytes - (this.#time.end - this.#time.start);
    const idAt = this.#id.start + (this.#idFirst ? 0 : timeGrowth);
    const bodyAt = this.#body.start + (this.#idFirst ? idGrowth : 0);
    const bodyEnd = this.#body.end + timeGrowth + (this.#idFirst ? idGrowth : 0);
    return { idSpan: { start: idAt, end: idAt + idBytes }, body: { start: bodyAt, end: bodyEnd } };
  }
}
