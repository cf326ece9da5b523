import type { Random } from './random.js';

export interface BackoffOptions {
  readonly baseMs: number;
  readonly maxMs: number;
}

/**
 * Delay before attempt number `failures + 1`, in milliseconds: doubling from `baseMs` up to `maxMs`, of which a random
 * half is taken away so that many callers do not come back at one instant. 0 after no failure.
 */
export function backoffMs(failures: number, options: BackoffOptions, random: Random): number {
  if (failures <= 0) return 0;
  const full = Math.min(options.maxMs, options.baseMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(full / 2 + (full / 2) * random());
}
