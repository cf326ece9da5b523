import { Client, type Dispatcher, Pool } from 'undici';
import type { Clock } from '../base/clock.js';
import { type Connector, originConnector } from './connector.js';

export interface OriginPoolsOptions {
  readonly clock: Clock;
  /** Until a socket is open, the TLS handshake included. */
  readonly connectTimeoutMs: number;
}

/** undici's own time-outs are off: streams may be silent for hours, and deadlines are the gateway's own. */
const CLIENT_OPTIONS = { headersTimeout: 0, bodyTimeout: 0, pipelining: 1 } as const;

interface Origin {
  readonly pool: Pool;
  readonly connector: Connector;
}

/**
 * The sockets to all remote servers: one pool for each origin, as many sockets as requests are under way. Idle sockets
 * do not keep the process alive and are closed after a few seconds.
 */
export class OriginPools {
  readonly #options: OriginPoolsOptions;
  readonly #origins = new Map<string, Origin>();
  readonly #single = new Set<Client>();
  #closed = false;

  constructor(options: OriginPoolsOptions) {
    this.#options = options;
  }

  /** Sends a request; its outcome, also a failure to send, reaches the handler only. `fresh`: not on a used socket. */
  dispatch(
    origin: string,
    request: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
    fresh: boolean,
  ): void {
    if (this.#closed) throw new Error('the gateway closes');
    const { pool, connector } = this.#origin(origin);
    if (fresh) this.#dispatchOnce(origin, connector, request, handler);
    else pool.dispatch(request, handler);
  }

  /** Ends every socket; what is under way fails. */
  async close(): Promise<void> {
    this.#closed = true;
    const origins = [...this.#origins.values()];
    this.#origins.clear();
    for (const { connector } of origins) connector.close();
    await Promise.all([
      ...origins.map(({ pool }) => pool.destroy()),
      ...[...this.#single].map((c) => c.destroy()),
    ]);
  }

  #origin(name: string): Origin {
    const known = this.#origins.get(name);
    if (known) return known;
    const connector = originConnector(this.#options.clock, this.#options.connectTimeoutMs);
    const created = { connector, pool: new Pool(name, { ...CLIENT_OPTIONS, connect: connector.connect }) };
    this.#origins.set(name, created);
    return created;
  }

  #dispatchOnce(
    origin: string,
    connector: Connector,
    request: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ): void {
    const client = new Client(origin, { ...CLIENT_OPTIONS, connect: connector.connect });
    this.#single.add(client);
    client.dispatch(request, handler);
    // Graceful: waits for the response before it closes the socket.
    void client.close().finally(() => this.#single.delete(client));
  }
}
