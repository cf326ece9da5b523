import type { Clock } from '../base/clock.js';
import type { EventSink } from '../pipeline/events.js';
import type { Era } from '../protocol/revisions.js';

/** How long a verdict on a server holds. */
const HORIZON_MS = 60 * 60_000;
/** The same for one that rests on weak evidence. */
const WEAK_MS = 30_000;

interface Verdict {
  readonly speaks: boolean;
  readonly weak: boolean;
  readonly until: number;
}

/**
 * Which eras servers were found to speak, for an hour. Bounded by the configuration: a server id stands for one URL or
 * command.
 */
export class Eras {
  readonly #clock: Clock;
  readonly #emit: EventSink;
  readonly #verdicts = new Map<string, Partial<Record<Era, Verdict>>>();

  constructor(clock: Clock, emit: EventSink) {
    this.#clock = clock;
    this.#emit = emit;
  }

  /** Whether a server speaks an era; undefined where that is not known, or not any more. */
  speaks(serverId: string, era: Era): boolean | undefined {
    const verdict = this.#verdicts.get(serverId)?.[era];
    return verdict && this.#clock.now() < verdict.until ? verdict.speaks : undefined;
  }

  note(serverId: string, era: Era, speaks: boolean, why: string, weak = false): void {
    const before = this.speaks(serverId, era);
    const verdict: Verdict = { speaks, weak, until: this.#clock.now() + (weak ? WEAK_MS : HORIZON_MS) };
    this.#verdicts.set(serverId, { ...this.#verdicts.get(serverId), [era]: verdict });
    if (before !== speaks) this.#emit({ type: 'era_found', serverId, era, speaks, why });
  }

  /** A server of the legacy era answered: that it does not speak the modern one is certain now. */
  confirmLegacy(serverId: string): void {
    const why = 'it answered initialize';
    this.note(serverId, 'legacy', true, why);
    if (this.#verdicts.get(serverId)?.modern?.weak) this.note(serverId, 'modern', false, why);
  }

  forget(serverId: string): void {
    this.#verdicts.delete(serverId);
  }
}
