import { toolListTtlMs } from '../protocol/hints.js';
import type { Entry } from './store.js';

export interface TtlRules {
  /** TTL where the server sends none; read at each look, so that a change needs no restart. */
  readonly defaultTtlMs: (serverId: string) => number;
  readonly maxTtlMs: number;
}

/**
 * Whether an entry may still be served at `now`: from the instant it was received until, and not at, the end of its
 * TTL. A clock that was set back makes it stale rather than long-lived.
 */
export function isFresh(entry: Entry, now: number, rules: TtlRules): boolean {
  return now >= entry.receivedAt && now < freshUntil(entry, rules);
}

/** The end of an entry's TTL, as the operator's default is now. */
export function freshUntil({ freshUntil: until, receivedAt, serverId }: Entry, rules: TtlRules): number {
  if (until !== undefined) return until;
  return receivedAt + toolListTtlMs(undefined, rules.defaultTtlMs(serverId), rules.maxTtlMs);
}
