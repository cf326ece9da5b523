import type { Clock, Timer } from '../base/clock.js';

/**
 * Things that fall due a fixed delay after they were last added. One timer serves all of them, so that adding and
 * removing one costs no timer; it runs only while something waits.
 */
export class DueList<T> {
  readonly #clock: Clock;
  readonly #delayMs: number;
  readonly #onDue: (item: T) => void;
  /** In the order of falling due, because the delay is the same for all. */
  readonly #dueAt = new Map<T, number>();
  #timer: Timer | undefined;
  #closed = false;

  /** `onDue` is called with an item that was taken off the list; it may add it again. */
  constructor(clock: Clock, delayMs: number, onDue: (item: T) => void) {
    this.#clock = clock;
    this.#delayMs = Math.max(1, delayMs);
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#dueAt.size;
  }

  /** Puts an item on the list, or its delay back to the full. */
  add(item: T): void {
    if (this.#closed) return;
    this.#dueAt.delete(item);
    this.#dueAt.set(item, this.#clock.now() + this.#delayMs);
    if (!this.#timer) this.#arm();
  }

  delete(item: T): void {
    this.#dueAt.delete(item);
  }

  /** Items and the instants since which they wait, the longest waiting first. */
  *waiting(): Generator<readonly [item: T, sinceAt: number]> {
    for (const [item, dueAt] of this.#dueAt) yield [item, dueAt - this.#delayMs];
  }

  /** Forgets everything; what is added later is ignored. */
  close(): void {
    this.#closed = true;
    this.#dueAt.clear();
    this.#timer?.cancel();
  }

  #arm(): void {
    const first = this.#dueAt.values().next();
    if (first.done || this.#closed) return;
    this.#timer = this.#clock.after(Math.max(0, first.value - this.#clock.now()), () => this.#fire());
  }

  #fire(): void {
    const now = this.#clock.now();
    for (const [item, dueAt] of this.#dueAt) {
      if (dueAt > now) break;
      this.#dueAt.delete(item);
      this.#onDue(item);
    }
    this.#timer = undefined;
    this.#arm();
  }
}
