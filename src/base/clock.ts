/** A running timer; `cancel` is idempotent. */
export interface Timer {
  cancel(): void;
}

/** The one door through which time enters. Instants are milliseconds since the Unix epoch. */
export interface Clock {
  now(): number;
  /** Runs `fn` once after `delayMs`. A timer never keeps the process alive. */
  after(delayMs: number, fn: () => void): Timer;
}

export const systemClock: Clock = {
  now: Date.now,
  after(delayMs, fn) {
    const handle = setTimeout(fn, delayMs);
    handle.unref();
    return { cancel: () => clearTimeout(handle) };
  },
};
