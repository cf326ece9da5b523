import type { Clock, Timer } from '../../src/base/clock.js';

interface Armed {
  readonly at: number;
  readonly delayMs: number;
  readonly fn: () => void;
}

/** Time that stands still until a test moves it. */
export class FakeClock implements Clock {
  #now = 1_700_000_000_000;
  readonly #timers = new Set<Armed>();
  readonly #waiting = new Set<() => void>();

  now(): number {
    return this.#now;
  }

  after(delayMs: number, fn: () => void): Timer {
    const timer = { at: this.#now + delayMs, delayMs, fn };
    this.#timers.add(timer);
    for (const look of [...this.#waiting]) look();
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** Delays of the timers that are running, shortest first. */
  get delays(): number[] {
    return [...this.#timers].map((timer) => timer.delayMs).sort((a, b) => a - b);
  }

  /** Moves time on and runs what falls due, in order. */
  advance(byMs: number): void {
    const end = this.#now + byMs;
    for (;;) {
      const due = [...this.#timers].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      this.#timers.delete(due);
      this.#now = Math.max(this.#now, due.at);
      due.fn();
    }
    this.#now = end;
  }

  /** Resolves to the delay of a running timer that fits, as soon as there is one. */
  armed(fits: (delayMs: number) => boolean): Promise<number> {
    return new Promise((resolve) => {
      const look = () => {
        const found = this.delays.find(fits);
        if (found === undefined) return;
        this.#waiting.delete(look);
        resolve(found);
      };
      this.#waiting.add(look);
      look();
    });
  }
}
