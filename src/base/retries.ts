import { type BackoffOptions, backoffMs } from './backoff.js';
import type { Clock, Timer } from './clock.js';
import type { Random } from './random.js';

/** What stood this long was good, even if nothing came of it. */
const GOOD_LIFE_MS = 10_000;

/** When something that is to stand is begun again after it was lost: later each time, until it proves good. */
export class Retries {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #backoff: BackoffOptions;
  #failures = 0;
  #stoodAt: number | undefined;
  #timer: Timer | undefined;

  constructor(clock: Clock, random: Random, backoff: BackoffOptions) {
    this.#clock = clock;
    this.#random = random;
    this.#backoff = backoff;
  }

  stands(): void {
    this.cancel();
    this.#stoodAt = this.#clock.now();
  }

  /** It did what it is there for. */
  proved(): void {
    this.#failures = 0;
  }

  /** It stands no more, or an attempt failed. */
  lost(): void {
    if (this.#stoodAt !== undefined && this.#clock.now() - this.#stoodAt >= GOOD_LIFE_MS) this.#failures = 0;
    this.#stoodAt = undefined;
  }

  /** Calls `begin` when it is time; in place of what was planned before. */
  plan(begin: () => void): void {
    this.cancel();
    this.#timer = this.#clock.after(backoffMs(++this.#failures, this.#backoff, this.#random), begin);
  }

  cancel(): void {
    this.#timer?.cancel();
  }
}
