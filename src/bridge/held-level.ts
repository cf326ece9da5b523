import type { Clock } from '../base/clock.js';
import { severity } from '../protocol/log-levels.js';

/** A level is kept this long after the last request that needed it: most often the next one needs it, too. */
const LINGER_MS = 30_000;
/** What a session is told that nobody needs logs of: a level cannot be taken back. */
const QUIETEST = 'emergency';

/** Tells the session a level. Never rejects. */
export type Tell = (level: string) => Promise<void>;

/**
 * The log level of one session with a legacy server. Modern requests each ask for their own; the session is told the most
 * verbose of those under way, and each is then given what it asked for.
 */
export class HeldLevel {
  readonly #clock: Clock;
  /** Of the requests under way. */
  readonly #wanted: string[] = [];
  #told: string | undefined;
  #neededAt = 0;
  /** One thing is told behind the other. */
  #telling: Promise<void> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when the session logs at this level at least; returns the end of the need. */
  async hold(level: string, tell: Tell): Promise<() => void> {
    this.#wanted.push(level);
    if (this.#due() !== undefined || this.#telling) await this.#adjust(tell);
    return () => {
      this.#wanted.splice(this.#wanted.indexOf(level), 1);
      if (level === this.#told) this.#neededAt = this.#clock.now();
    };
  }

  /** Tells the session a quieter level where nobody needed this one for long. Does not wait. */
  relax(tell: Tell): void {
    if (!this.#telling && this.#due() !== undefined) void this.#adjust(tell);
  }

  #adjust(tell: Tell): Promise<void> {
    const before = this.#telling ?? Promise.resolve();
    const telling = before.then(async () => {
      const level = this.#due();
      if (level !== undefined) {
        this.#told = level;
        await tell(level);
      }
      if (this.#telling === telling) this.#telling = undefined;
    });
    this.#telling = telling;
    return telling;
  }

  /** The level that the session has to be told now. */
  #due(): string | undefined {
    const needed = mostVerbose(this.#wanted);
    if (needed !== undefined && (this.#told === undefined || severity(needed) < severity(this.#told)))
      return needed;
    const since = this.#clock.now() - this.#neededAt;
    const quieter = needed ?? QUIETEST;
    return this.#told !== undefined && this.#told !== quieter && since >= LINGER_MS ? quieter : undefined;
  }
}

function mostVerbose(levels: readonly string[]): string | undefined {
  let most: string | undefined;
  for (const level of levels) if (most === undefined || severity(level) < severity(most)) most = level;
  return most;
}
