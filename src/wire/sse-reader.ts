import { GatewayError } from '../base/errors.js';
import { JsonError, skipSpace, skipValue } from './json.js';

/** One block of an event stream. */
export interface SseEvent {
  /** `message` where the block names none. */
  readonly event: string;
  /** The data lines joined by LF; empty for a block that only sets an id or a delay. */
  readonly data: Buffer;
  /** The stream's last event id, from this block or an earlier one; undefined before the first and after an empty one. */
  readonly id: string | undefined;
  /** Reconnection delay, when this block sets one. */
  readonly retryMs: number | undefined;
}

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;

/**
 * Reads an event stream from its bytes, in time linear to them.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 *
 * Differs from the standard in two points. Blocks without data are emitted too, since their id and delay matter to a
 * resumption. And `end` accepts an unfinished block whose data is a complete JSON object: servers are known to omit
 * the last blank line, and an object cannot be the beginning of a longer one.
 */
export class SseReader {
  readonly #maxEventBytes: number;
  readonly #emit: (event: SseEvent) => void;
  /** Pieces of a line that earlier chunks began. */
  #partial: Buffer[] = [];
  #partialBytes = 0;
  #started = false;
  /** The last line ended in CR at the end of a chunk: an LF that follows belongs to it. */
  #afterCr = false;
  readonly #data = new DataLines();
  #event = '';
  #id: string | undefined;
  #retryMs: number | undefined;
  #touched = false;

  /** `maxEventBytes` bounds one block: its data and the line being read. */
  constructor(maxEventBytes: number, emit: (event: SseEvent) => void) {
    this.#maxEventBytes = maxEventBytes;
    this.#emit = emit;
  }

  /** Emits every block that the chunk completes. Throws GatewayError `too_large`; the reader is then of no more use. */
  push(chunk: Buffer): void {
    let at = 0;
    let lf = -2;
    let cr = -2;
    while (at < chunk.length) {
      if (this.#afterCr) {
        this.#afterCr = false;
        if (chunk[at] === LF) {
          at++;
          continue;
        }
      }
      // Each search result is kept until passed, or a chunk of one kind of line end would be searched again and again.
      if (lf !== -1 && lf < at) lf = chunk.indexOf(LF, at);
      if (cr !== -1 && cr < at) cr = chunk.indexOf(CR, at);
      const end = cr === -1 || (lf !== -1 && lf < cr) ? lf : cr;
      if (end === -1) break;
      this.#line(this.#complete(chunk.subarray(at, end)));
      this.#afterCr = end === cr;
      at = end + 1;
    }
    if (at < chunk.length) this.#keep(chunk.subarray(at));
  }

  /** The connection ended. Emits the unfinished block if its data is a complete JSON object, else drops it. */
  end(): void {
    if (this.#partialBytes > 0) this.#line(this.#complete(Buffer.alloc(0)));
    if (isWholeObject(this.#data.joined())) this.#dispatch();
  }

  #keep(rest: Buffer): void {
    this.#check(rest.length);
    this.#partial.push(rest);
    this.#partialBytes += rest.length;
  }

  #complete(tail: Buffer): Buffer {
    this.#check(tail.length);
    let line = tail;
    if (this.#partialBytes > 0) {
      line = Buffer.concat([...this.#partial, tail]);
      this.#partial = [];
      this.#partialBytes = 0;
    }
    if (this.#started) return line;
    this.#started = true;
    return line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? line.subarray(3) : line;
  }

  #check(more: number): void {
    if (this.#data.bytes + this.#partialBytes + more > this.#maxEventBytes)
      throw new GatewayError('too_large', `An event is larger than ${this.#maxEventBytes} bytes`);
  }

  #line(line: Buffer): void {
    if (line.length === 0) return this.#dispatch();
    if (line[0] === COLON) return;
    const colon = line.indexOf(COLON);
    const nameEnd = colon < 0 ? line.length : colon;
    const start = colon < 0 ? line.length : line[colon + 1] === SPACE ? colon + 2 : colon + 1;
    this.#field(line.toString('latin1', 0, nameEnd), line.subarray(start));
  }

  #field(name: string, value: Buffer): void {
    switch (name) {
      case 'data':
        this.#data.add(value);
        break;
      case 'event':
        this.#event = value.toString();
        break;
      case 'id':
        if (value.includes(0)) return;
        this.#id = value.length > 0 ? value.toString() : undefined;
        break;
      case 'retry':
        if (!isDigits(value)) return;
        this.#retryMs = Number(value.toString('latin1'));
        break;
      default:
        return;
    }
    this.#touched = true;
  }

  #dispatch(): void {
    if (!this.#touched) return;
    const event = {
      event: this.#event || 'message',
      data: this.#data.joined(),
      id: this.#id,
      retryMs: this.#retryMs,
    };
    this.#data.clear();
    this.#event = '';
    this.#retryMs = undefined;
    this.#touched = false;
    this.#emit(event);
  }
}

/** The data of one block. A single line, the common case, is never copied; more grow one buffer by doubling. */
class DataLines {
  #first: Buffer | undefined;
  #grown: Buffer | undefined;
  #length = 0;

  get bytes(): number {
    return this.#length;
  }

  add(line: Buffer): void {
    if (!this.#first) {
      this.#first = line;
      this.#length = line.length;
      return;
    }
    const buffer = this.#room(line.length + 1);
    buffer[this.#length] = LF;
    line.copy(buffer, this.#length + 1);
    this.#length += line.length + 1;
  }

  joined(): Buffer {
    return this.#grown?.subarray(0, this.#length) ?? this.#first ?? Buffer.alloc(0);
  }

  clear(): void {
    this.#first = undefined;
    this.#grown = undefined;
    this.#length = 0;
  }

  #room(more: number): Buffer {
    const current = this.#grown ?? this.#first ?? Buffer.alloc(0);
    if (this.#grown && this.#length + more <= this.#grown.length) return this.#grown;
    const larger = Buffer.allocUnsafeSlow(2 * (this.#length + more));
    current.copy(larger, 0, 0, this.#length);
    this.#grown = larger;
    return larger;
  }
}

function isDigits(value: Buffer): boolean {
  return value.length > 0 && value.every((byte) => byte >= 0x30 && byte <= 0x39);
}

function isWholeObject(data: Buffer): boolean {
  const start = skipSpace(data, 0);
  if (data[start] !== 0x7b) return false;
  try {
    return skipSpace(data, skipValue(data, start)) === data.length;
  } catch (error) {
    if (error instanceof JsonError) return false;
    throw error;
  }
}
