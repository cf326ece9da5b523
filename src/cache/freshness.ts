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
  if (now < entry.receivedAt) return false;
  const { freshUntil, receivedAt, serverId } = entry;
  if (freshUntil !== undefined) return now < freshUntil;
  return now < receivedAt + toolListTtlMs(undefined, rules.defaultTtlMs(serverId), rules.maxTtlMs);
}
