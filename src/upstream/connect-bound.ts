import type { Clock } from '../base/clock.js';
import type { GatewayError } from '../base/errors.js';
import { closed, timedOut } from './request-failures.js';

export interface ConnectLimits {
  readonly serverId: string;
  readonly clock: Clock;
  readonly connectTimeoutMs: number;
  /** The request by which the attempt is made. */
  readonly method: string;
  /** Aborted when the attempt to connect is not wanted any more. */
  readonly abandoned: AbortSignal;
}

/** What ends an attempt to connect: `signal` is aborted, and `gaveUp` rejects with the reason. */
export interface ConnectBound {
  readonly signal: AbortSignal;
  readonly gaveUp: Promise<never>;
  /** The attempt is over; to be called in any case. */
  readonly settled: () => void;
}

export function connectBound(limits: ConnectLimits): ConnectBound {
  const { clock, serverId, connectTimeoutMs, method, abandoned } = limits;
  const ended = new AbortController();
  let settled: () => void = () => {};
  const gaveUp = new Promise<never>((_, reject) => {
    const giveUp = (error: GatewayError) => {
      ended.abort();
      reject(error);
    };
    const onAbandon = () => giveUp(closed(serverId));
    const timer = clock.after(connectTimeoutMs, () =>
      giveUp(timedOut(serverId, method, connectTimeoutMs, 'connectTimeoutMs')),
    );
    abandoned.addEventListener('abort', onAbandon, { once: true });
    settled = () => {
      timer.cancel();
      abandoned.removeEventListener('abort', onAbandon);
    };
  });
  return { signal: ended.signal, gaveUp, settled };
}
