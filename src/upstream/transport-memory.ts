import type { Clock } from '../base/clock.js';

export type Transport = 'http' | 'sse';

/** How long a server is taken to speak what it was found to speak. */
const HORIZON_MS = 60 * 60_000;

/** Which of the two HTTP transports servers were found to speak, for an hour. One for the process; bounded by its configuration. */
export class TransportMemory {
  readonly #clock: Clock;
  readonly #verdicts = new Map<string, { readonly transport: Transport; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  recall(serverId: string, url: string): Transport | undefined {
    const key = keyOf(serverId, url);
    const verdict = this.#verdicts.get(key);
    if (!verdict) return undefined;
    if (this.#clock.now() < verdict.until) return verdict.transport;
    this.#verdicts.delete(key);
    return undefined;
  }

  remember(serverId: string, url: string, transport: Transport): void {
    this.#verdicts.set(keyOf(serverId, url), { transport, until: this.#clock.now() + HORIZON_MS });
  }

  forget(serverId: string, url: string): void {
    this.#verdicts.delete(keyOf(serverId, url));
  }
}

function keyOf(serverId: string, url: string): string {
  return JSON.stringify([serverId, url]);
}
