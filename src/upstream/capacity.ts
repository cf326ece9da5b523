import { GatewayError } from '../base/errors.js';
import type { Why } from './standing.js';

/** How many connections may be open at a time. */
export interface Caps {
  readonly ofServer: number;
  readonly overall: number;
}

/** What counts of whatever holds a connection. */
export interface Holder {
  readonly serverId: string;
  readonly open: boolean;
  readonly idle: boolean;
  readonly inUse: boolean;
  readonly lastUsedAt: number;
}

const RETRY_AFTER_MS = 1_000;

/**
 * The connection that must go so that another one may be made; undefined where there is room. It goes for an agent's
 * request only. Throws GatewayError `at_capacity` where none can go.
 */
export function makeRoom<T extends Holder>(
  asking: T,
  keepers: readonly T[],
  caps: Caps,
  why: Why,
): T | undefined {
  const { serverId } = asking;
  const open = keepers.filter((keeper) => keeper.open && keeper !== asking);
  const siblings = open.filter((keeper) => keeper.serverId === serverId);
  const serverIsFull = siblings.length >= caps.ofServer;
  if (!serverIsFull && open.length < caps.overall) return undefined;
  const victim = why === 'asked' ? leastNeeded(serverIsFull ? siblings : open) : undefined;
  if (victim) return victim;
  const which = serverIsFull ? `that server "${serverId}" may have` : 'that the gateway may have';
  const limit = serverIsFull ? caps.ofServer : caps.overall;
  throw new GatewayError('at_capacity', `All ${limit} connections ${which} are in use; try again later`, {
    serverId,
    retryAfterMs: RETRY_AFTER_MS,
  });
}

/** Of the connections on which nothing is under way, first those that nobody listens to, then the longest idle. */
function leastNeeded<T extends Holder>(keepers: readonly T[]): T | undefined {
  const idle = keepers.filter((keeper) => keeper.idle);
  const unheard = idle.filter((keeper) => !keeper.inUse);
  const from = unheard.length > 0 ? unheard : idle;
  return from.reduce<T | undefined>(
    (oldest, keeper) => (oldest && oldest.lastUsedAt <= keeper.lastUsedAt ? oldest : keeper),
    undefined,
  );
}
