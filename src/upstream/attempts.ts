import { backoffMs } from '../base/backoff.js';
import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { Random } from '../base/random.js';
import { InitializeRefused } from './handshake.js';

/** Attempts made because an agent asks are held apart a little; those made on our own account much more. */
const ASKED_BACKOFF = { baseMs: 200, maxMs: 5_000 };
const OWN_BACKOFF = { baseMs: 1_000, maxMs: 30_000 };
/** A server's own Retry-After is followed up to this. */
const MAX_RETRY_AFTER_MS = 60_000;
/** A connection that stood this long was a good one, even if nothing was asked on it. */
const GOOD_LIFE_MS = 10_000;

/** What became of the attempts to connect to a server, and when the next one may be made. */
export class Attempts {
  readonly #clock: Clock;
  readonly #random: Random;
  #failures = 0;
  #failedWith: unknown;
  #retryAt = 0;
  /** Attempts of our own since a connection proved good: one that breaks at once does not count. */
  #ownTries = 0;
  #connectedAt = 0;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** True while it is too early for another attempt. */
  get resting(): boolean {
    return this.#clock.now() < this.#retryAt;
  }

  /** What the last attempt failed with, and how long it is still too early for another one; else undefined. */
  refusal(): unknown {
    return this.resting ? withDelay(this.#failedWith, this.#retryAt - this.#clock.now()) : undefined;
  }

  /** Notes a failed attempt; returns the milliseconds until the next may be made. */
  failed(failure: unknown): number {
    const asked = failure instanceof GatewayError ? (failure.details.retryAfterMs ?? 0) : 0;
    const delayMs = backoffMs(++this.#failures, ASKED_BACKOFF, this.#random);
    const retryInMs = Math.max(delayMs, Math.min(asked, MAX_RETRY_AFTER_MS));
    this.#failedWith = failure;
    this.#retryAt = this.#clock.now() + retryInMs;
    return retryInMs;
  }

  /** Another attempt may be made at once where the last one was refused for the era in which it was made. */
  reconsider(): void {
    const failure = this.#failedWith;
    if (failure instanceof GatewayError && failure.code === 'other_era') this.#retryAt = 0;
  }

  connected(): void {
    this.#failures = 0;
    this.#failedWith = undefined;
    this.#retryAt = 0;
    this.#connectedAt = this.#clock.now();
  }

  /** The server did what it is there for. */
  proved(): void {
    this.#ownTries = 0;
  }

  /** The connection broke. */
  lost(): void {
    if (this.#clock.now() - this.#connectedAt >= GOOD_LIFE_MS) this.proved();
  }

  /** Milliseconds until an attempt on our own account: longer each time until a connection proves good. */
  nextOwnMs(): number {
    return backoffMs(++this.#ownTries, OWN_BACKOFF, this.#random);
  }
}

/** A failure that says when the server is tried again. Waiting helps neither a refusal nor a refused credential. */
function withDelay(failure: unknown, delayMs: number): unknown {
  if (!(failure instanceof GatewayError) || failure instanceof InitializeRefused) return failure;
  if (failure.code === 'unauthorized' || failure.code === 'other_era') return failure;
  const message = `${failure.message}; it is tried again in ${delayMs} ms at the earliest`;
  return new GatewayError(failure.code, message, {
    ...failure.details,
    retryAfterMs: delayMs,
    cause: failure,
  });
}
