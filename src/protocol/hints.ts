/** Who may be given a kept result. An absent or unknown claim is private. */
export type Scope = 'public' | 'private';

/** Default of the TTL of a list whose server sends none: a deliberate deviation from the specification's 0. */
export const DEFAULT_TOOLLIST_TTL_MS = 60_000;
export const MAX_TTL_MS = 15 * 60_000;

/**
 * How long a list may be kept, in milliseconds; 0: not at all. `ttlMs` is what the server sent: a number counts as it
 * is (zero and below: never kept), anything else as absent. Absent takes `defaultTtlMs`, and `maxTtlMs` bounds both.
 * https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching
 */
export function toolListTtlMs(ttlMs: unknown, defaultTtlMs: number, maxTtlMs: number = MAX_TTL_MS): number {
  const wanted = typeof ttlMs === 'number' && !Number.isNaN(ttlMs) ? ttlMs : defaultTtlMs;
  return Math.min(Math.max(wanted, 0), maxTtlMs);
}

export function scopeOf(cacheScope: unknown): Scope {
  return cacheScope === 'public' ? 'public' : 'private';
}

/** The scope that an agent is told: `shared` is whether the list is kept for all callers of its server. */
export function emittedScope(claimed: Scope, shared: boolean): Scope {
  return shared ? claimed : 'private';
}

/** What an agent is told of a list that is kept until `until`, in whole milliseconds. */
export function remainingTtlMs(until: number, now: number): number {
  return Math.max(0, Math.floor(until - now));
}
