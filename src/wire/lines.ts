import { GatewayError } from '../base/errors.js';

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const EMPTY = Buffer.alloc(0);
/** Pieces below this size are gathered into blocks of it. */
const BLOCK_BYTES = 16 * 1024;

/**
 * Cuts a byte stream into lines: LF ends one, a CR before it is dropped. Every byte is looked at once and copied at
 * most twice, however the stream is cut.
 */
export class LineReader {
  readonly #maxLineBytes: number;
  readonly #onLine: (line: Buffer) => void;
  readonly #held = new Pieces();
  #broken = false;

  /** `onLine` gets each line without its end; it must not throw. The line may share memory with the chunk. */
  constructor(maxLineBytes: number, onLine: (line: Buffer) => void) {
    this.#maxLineBytes = maxLineBytes;
    this.#onLine = onLine;
  }

  /**
   * Takes the next chunk, which must not be written to afterwards. Throws GatewayError `too_large` as soon as a line is
   * known to be above the limit, after the lines before it were delivered; from then on nothing is taken.
   */
  push(chunk: Buffer): void {
    if (this.#broken) return;
    let start = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      this.#complete(chunk.subarray(start, end));
      start = end + 1;
    }
    if (start < chunk.length) this.#hold(chunk.subarray(start));
  }

  /** The stream is over: what it holds behind the last LF is a line too. */
  end(): void {
    if (this.#held.bytes > 0) this.#complete(EMPTY);
  }

  #complete(piece: Buffer): void {
    const lineBytes = this.#lineBytes(piece);
    this.#onLine(this.#held.take(piece).subarray(0, lineBytes));
  }

  #hold(piece: Buffer): void {
    this.#lineBytes(piece);
    this.#held.add(piece);
  }

  /** Length of the line if it ended behind `piece`. Throws when that is too much. */
  #lineBytes(piece: Buffer): number {
    const bytes = this.#held.bytes + piece.length;
    const last = piece.length > 0 ? piece[piece.length - 1] : this.#held.last;
    const lineBytes = last === CR ? bytes - 1 : bytes;
    if (lineBytes <= this.#maxLineBytes) return lineBytes;
    this.#broken = true;
    this.#held.clear();
    throw new GatewayError('too_large', `A line is above the limit of ${this.#maxLineBytes} bytes`);
  }
}

/** The beginning of a line whose end has not come. Small pieces share blocks: a trickle costs no object a byte. */
class Pieces {
  bytes = 0;
  last: number | undefined;
  #sealed: Buffer[] = [];
  #block: Buffer = EMPTY;
  #used = 0;

  add(piece: Buffer): void {
    this.bytes += piece.length;
    this.last = piece[piece.length - 1];
    if (piece.length > this.#block.length - this.#used) this.#seal();
    if (piece.length >= BLOCK_BYTES) {
      this.#sealed.push(piece);
      return;
    }
    if (this.#block.length === 0) this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
    this.#used += piece.copy(this.#block, this.#used);
  }

  /** Everything held and `piece` behind it, in one buffer; nothing is held afterwards. */
  take(piece: Buffer): Buffer {
    if (this.bytes === 0) return piece;
    this.#seal();
    const whole = Buffer.concat([...this.#sealed, piece], this.bytes + piece.length);
    this.clear();
    return whole;
  }

  clear(): void {
    this.bytes = 0;
    this.last = undefined;
    this.#sealed = [];
    this.#block = EMPTY;
    this.#used = 0;
  }

  #seal(): void {
    if (this.#used > 0) this.#sealed.push(this.#block.subarray(0, this.#used));
    this.#block = EMPTY;
    this.#used = 0;
  }
}

/** A message as one line. CR and LF can only be white space between its tokens, so that spaces may stand for them. */
export function frameLine(message: Buffer): Buffer {
  const line = Buffer.allocUnsafe(message.length + 1);
  message.copy(line);
  line[message.length] = LF;
  for (const end of [LF, CR]) {
    for (let at = message.indexOf(end); at !== -1; at = message.indexOf(end, at + 1)) line[at] = SPACE;
  }
  return line;
}
