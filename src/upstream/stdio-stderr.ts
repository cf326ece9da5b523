import type { Clock } from '../base/clock.js';
import type { TextReader } from './stdio-text.js';

const LF = 0x0a;
/** A longer line is cut into pieces of this size. */
const PIECE_BYTES = 2048;
const TAIL_LINES = 20;
const TAIL_CHARS = 4096;
/** A child may report this many lines at once, and this many a second for ever. */
const BURST_LINES = 100;
const LINES_PER_SECOND = 10;

/**
 * A child's stderr: every byte is taken, so that the child never blocks on it; lines are reported within a rate, and
 * the last ones kept for the report of its end.
 */
export class StderrLog {
  readonly #piece = Buffer.allocUnsafeSlow(PIECE_BYTES);
  readonly #tail: string[] = [];
  readonly #read: TextReader;
  readonly #report: (line: string) => void;
  readonly #rate: TokenBucket;
  #used = 0;
  #suppressed = 0;

  constructor(read: TextReader, report: (line: string) => void, clock: Clock) {
    this.#read = read;
    this.#report = report;
    this.#rate = new TokenBucket(BURST_LINES, LINES_PER_SECOND, clock);
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      const window = chunk.subarray(at, at + PIECE_BYTES - this.#used);
      const end = window.indexOf(LF);
      const taken = end === -1 ? window : window.subarray(0, end);
      this.#used += taken.copy(this.#piece, this.#used);
      if (end !== -1 || this.#used === PIECE_BYTES) this.#flush();
      at += end === -1 ? window.length : end + 1;
    }
  }

  /** Nothing more comes: reports what is left. */
  end(): void {
    this.#flush();
    this.#reportSuppressed();
  }

  /** The last lines, at most 20 and 4096 characters; empty where there was none. */
  tail(): string {
    return this.#tail.join('\n').slice(-TAIL_CHARS);
  }

  #flush(): void {
    const line = this.#read(this.#piece.subarray(0, this.#used));
    this.#used = 0;
    if (line === '') return;
    this.#tail.push(line);
    if (this.#tail.length > TAIL_LINES) this.#tail.shift();
    if (!this.#rate.take()) {
      this.#suppressed++;
      return;
    }
    this.#reportSuppressed();
    this.#report(line);
  }

  #reportSuppressed(): void {
    if (this.#suppressed > 0) this.#report(`[${this.#suppressed} lines suppressed]`);
    this.#suppressed = 0;
  }
}

/** Lets `burst` through at once, and `perSecond` in the long run. */
class TokenBucket {
  readonly #burst: number;
  readonly #perSecond: number;
  readonly #clock: Clock;
  #tokens: number;
  #filledAt: number;

  constructor(burst: number, perSecond: number, clock: Clock) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#clock = clock;
    this.#tokens = burst;
    this.#filledAt = clock.now();
  }

  take(): boolean {
    const now = this.#clock.now();
    const gained = (Math.max(0, now - this.#filledAt) / 1000) * this.#perSecond;
    this.#tokens = Math.min(this.#burst, this.#tokens + gained);
    this.#filledAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}
