import type { Clock, Timer } from '../base/clock.js';

/** Least time between two notices of one kind to one agent, in milliseconds. */
export const NOTICE_WINDOW_MS = 250;

/** How long a notice has to wait, in milliseconds: not at all, unless one of its kind was told within the window. */
export function noticeDelayMs(toldAt: number | undefined, now: number): number {
  if (toldAt === undefined) return 0;
  return Math.min(NOTICE_WINDOW_MS, Math.max(0, toldAt + NOTICE_WINDOW_MS - now));
}

interface Topic {
  toldAt: number | undefined;
  /** Tells the latest notice that was held back. */
  waiting: (() => void) | undefined;
  timer: Timer | undefined;
}

/**
 * What one agent is told of changed lists: of each kind the first notice at once, of a burst behind it only the last,
 * when the window is over. A server may announce changes as fast as it likes; its agents list at their own pace.
 */
export class Notices {
  readonly #clock: Clock;
  readonly #topics = new Map<string, Topic>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `tell` now or when the window is over; an earlier one that still waits is then never called. */
  tell(kind: string, tell: () => void): void {
    const topic = this.#topic(kind);
    topic.waiting = tell;
    if (noticeDelayMs(topic.toldAt, this.#clock.now()) === 0) this.#release(topic);
    else this.#arm(topic);
  }

  /** Tells everything that waits. */
  flush(): void {
    for (const topic of this.#topics.values()) this.#release(topic);
  }

  /** Nobody is told anything until `resume`. */
  pause(): void {
    for (const topic of this.#topics.values()) {
      topic.timer?.cancel();
      topic.timer = undefined;
    }
  }

  resume(): void {
    for (const topic of this.#topics.values()) if (topic.waiting) this.#arm(topic);
  }

  #topic(kind: string): Topic {
    const known = this.#topics.get(kind);
    if (known) return known;
    const topic = { toldAt: undefined, waiting: undefined, timer: undefined };
    this.#topics.set(kind, topic);
    return topic;
  }

  #arm(topic: Topic): void {
    const delayMs = noticeDelayMs(topic.toldAt, this.#clock.now());
    topic.timer ??= this.#clock.after(delayMs, () => this.#release(topic));
  }

  #release(topic: Topic): void {
    const tell = topic.waiting;
    topic.timer?.cancel();
    topic.timer = undefined;
    topic.waiting = undefined;
    if (!tell) return;
    topic.toldAt = this.#clock.now();
    tell();
  }
}
