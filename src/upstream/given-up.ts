import type { Clock } from '../base/clock.js';

/** How long a server may go on with a request that it was told to drop, in milliseconds. */
const AFTERLIFE_MS = 30_000;
const MAX_NOTED = 1_000;

interface Note {
  readonly agentId: string;
  readonly until: number;
}

/**
 * Requests that were given up before their answer came. Their server may not have noticed yet: what it says on a shared
 * channel may still be about them, and must not be taken for somebody else's.
 */
export class GivenUp {
  readonly #clock: Clock;
  /** By wire id, in the order of their ends. */
  readonly #notes = new Map<string, Note>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(wireId: string, agentId: string): void {
    this.#notes.set(wireId, { agentId, until: this.#clock.now() + AFTERLIFE_MS });
    this.#prune();
  }

  /** Its answer came after all: the server is done with it. */
  answered(wireId: string): void {
    this.#notes.delete(wireId);
  }

  /** Ids of the agents concerned. */
  agents(): string[] {
    this.#prune();
    return [...this.#notes.values()].map(({ agentId }) => agentId);
  }

  #prune(): void {
    const now = this.#clock.now();
    for (const [wireId, { until }] of this.#notes) {
      if (until > now && this.#notes.size <= MAX_NOTED) return;
      this.#notes.delete(wireId);
    }
  }
}
