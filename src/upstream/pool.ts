import type { Clock, Timer } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import { sha256Hex } from '../base/hash.js';
import type { Random } from '../base/random.js';
import type { ChangeBus } from '../pipeline/changes.js';
import type { EventSink } from '../pipeline/events.js';
import { type Agent, ANONYMOUS, type Caller, type Exchange } from '../pipeline/exchange.js';
import { poolKey, poolKeyMatches, shownPoolKey } from '../protocol/pool-key.js';
import type { Message } from '../wire/message.js';
import type { Implementation } from './handshake.js';
import { Keeper } from './keeper.js';
import type { Link, LinkEvents } from './link.js';

/** What the pool must know of a configured server. */
export interface PooledServer {
  readonly id: string;
  readonly isolate: 'auto' | 'token' | 'principal' | 'session';
  /** True where the caller's own token goes to this server. */
  readonly takesToken: boolean;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly maxRequestTimeoutMs: number;
  readonly maxConnections: number;
}

export interface PoolDeps {
  readonly server: (serverId: string) => PooledServer;
  readonly openLink: (
    serverId: string,
    token: string | undefined,
    events: LinkEvents,
    signal: AbortSignal,
  ) => Promise<Link>;
  readonly maxConnections: number;
  readonly connectionIdleMs: number;
  readonly factsTtlMs: number;
  readonly us: Implementation;
  readonly clock: Clock;
  readonly random: Random;
  readonly emit: EventSink;
  readonly changes: ChangeBus;
  readonly doubt: (serverId: string) => void;
}

/** All upstream connections, one keeper for each pool key. */
export class Pool {
  readonly #deps: PoolDeps;
  readonly #keepers = new Map<string, Keeper>();
  /** The keeper that an agent is attached to, by agent and server. */
  readonly #homes = new Map<string, Map<string, Keeper>>();
  #sweep: Timer | undefined;
  #closed = false;

  constructor(deps: PoolDeps) {
    this.#deps = deps;
  }

  /** Connections that stand or are being made. */
  get size(): number {
    let open = 0;
    for (const keeper of this.#keepers.values()) if (keeper.open) open++;
    return open;
  }

  /** Where the lists that an agent may be given live: the pool key without what only separates connections. */
  partitionOf(serverId: string, agent: Agent, caller: Caller): string {
    const server = this.#deps.server(serverId);
    const key = poolKey(serverId, server.takesToken ? caller.tokenHash : undefined);
    return key + isolation(server, agent, caller);
  }

  handle(exchange: Exchange): Promise<Message> {
    return this.#lease(exchange.serverId, exchange.agent, exchange.caller).handle(exchange);
  }

  notify(serverId: string, agent: Agent, caller: Caller, message: Message): void {
    this.#lease(serverId, agent, caller).notify(message);
  }

  listen(serverId: string, agent: Agent, caller: Caller): void {
    this.#lease(serverId, agent, caller).listen();
  }

  /** The agent is gone: what it asked of servers is withdrawn, and a connection of its own is ended. */
  leave(agent: Agent): void {
    for (const keeper of this.#homes.get(agent.id)?.values() ?? []) {
      keeper.detach(agent);
      if (keeper.alone) void this.#remove(keeper);
    }
    this.#homes.delete(agent.id);
  }

  /** Ends every connection of a server, or those of one pool key, and forgets what is known of them. */
  async close(idOrKey: string): Promise<void> {
    const ending = [...this.#keepers]
      .filter(([key]) => poolKeyMatches(key, idOrKey))
      .map(([, keeper]) => keeper);
    await Promise.all(ending.map((keeper) => this.#remove(keeper)));
  }

  async closeAll(): Promise<void> {
    this.#closed = true;
    this.#sweep?.cancel();
    await Promise.all([...this.#keepers.values()].map((keeper) => this.#remove(keeper)));
  }

  /** The keeper of a request; an agent whose token changed takes along what it had asked for. */
  #lease(serverId: string, agent: Agent, caller: Caller): Keeper {
    const server = this.#deps.server(serverId);
    const key = this.#key(server, agent, caller);
    let keeper = this.#keepers.get(key);
    if (!keeper) {
      keeper = this.#make(key, server, agent, caller);
      this.#keepers.set(key, keeper);
      this.#scheduleSweep();
    }
    const homes = this.#homesOf(agent);
    const home = homes.get(serverId);
    if (home !== keeper) {
      keeper.attach(agent, home?.detach(agent));
      homes.set(serverId, keeper);
    }
    return keeper;
  }

  #homesOf(agent: Agent): Map<string, Keeper> {
    let homes = this.#homes.get(agent.id);
    if (!homes) {
      homes = new Map();
      this.#homes.set(agent.id, homes);
    }
    return homes;
  }

  #key(server: PooledServer, agent: Agent, caller: Caller): string {
    const { fingerprint } = agent.profile;
    const declared = fingerprint === '{}' ? '' : `#declares:${sha256Hex(fingerprint).slice(0, 16)}`;
    return this.partitionOf(server.id, agent, caller) + declared;
  }

  #make(key: string, server: PooledServer, agent: Agent, caller: Caller): Keeper {
    if (this.#closed) throw new GatewayError('shutting_down', 'The gateway is shutting down');
    const token = server.takesToken ? caller.token : undefined;
    return new Keeper({
      ...this.#deps,
      key,
      serverId: server.id,
      shownKey: shownPoolKey(key),
      profile: agent.profile,
      alone: server.isolate === 'session',
      openLink: (events, signal) => this.#deps.openLink(server.id, token, events, signal),
      limits: { idleMs: server.requestTimeoutMs, totalMs: server.maxRequestTimeoutMs },
      connectTimeoutMs: server.connectTimeoutMs,
      admit: (keeper) => this.#admit(keeper, server),
    });
  }

  /** Makes room for one more connection by ending the one that was idle longest. */
  async #admit(asking: Keeper, server: PooledServer): Promise<void> {
    const open = [...this.#keepers.values()].filter((keeper) => keeper.open && keeper !== asking);
    const sameServer = open.filter((keeper) => keeper.serverId === server.id);
    const crowd =
      sameServer.length >= server.maxConnections
        ? sameServer
        : open.length >= this.#deps.maxConnections
          ? open
          : undefined;
    if (!crowd) return;
    const victim = leastNeeded(crowd);
    if (!victim) throw this.#full(server, crowd.length);
    await victim.disconnect('evicted');
    if (victim.audience.size === 0) await this.#remove(victim);
  }

  #full(server: PooledServer, connections: number): GatewayError {
    return new GatewayError(
      'at_capacity',
      `All ${connections} connections that "${server.id}" may have are in use; try again later`,
      { serverId: server.id, retryAfterMs: 1_000 },
    );
  }

  async #remove(keeper: Keeper): Promise<void> {
    if (this.#keepers.get(keeper.key) === keeper) this.#keepers.delete(keeper.key);
    await keeper.close();
  }

  #scheduleSweep(): void {
    if (this.#sweep || this.#closed) return;
    this.#sweep = this.#deps.clock.after(Math.max(1, this.#deps.connectionIdleMs / 4), () => {
      this.#sweep = undefined;
      this.#endIdle();
      if (this.#keepers.size > 0) this.#scheduleSweep();
    });
  }

  #endIdle(): void {
    const before = this.#deps.clock.now() - this.#deps.connectionIdleMs;
    for (const keeper of this.#keepers.values()) {
      if (keeper.inUse || keeper.lastUsedAt > before) continue;
      void keeper.disconnect('idle');
      if (keeper.audience.size === 0) void this.#remove(keeper);
    }
  }
}

/** Of the connections on which nothing is under way, first those that nobody listens to, then the longest idle. */
function leastNeeded(keepers: readonly Keeper[]): Keeper | undefined {
  const idle = keepers.filter((keeper) => keeper.idle);
  const unheard = idle.filter((keeper) => !keeper.inUse);
  const from = unheard.length > 0 ? unheard : idle;
  return from.reduce<Keeper | undefined>(
    (oldest, keeper) => (oldest && oldest.lastUsedAt <= keeper.lastUsedAt ? oldest : keeper),
    undefined,
  );
}

/** What `isolate` adds to a pool key. The separators cannot be part of a hash or of each other's values. */
function isolation(server: PooledServer, agent: Agent, caller: Caller): string {
  switch (server.isolate) {
    case 'session':
      // The hash, as the id itself is what a session is entered by.
      return `#session:${sha256Hex(agent.id).slice(0, 32)}`;
    case 'principal':
      return `#principal:${caller.principal}`;
    case 'auto':
      return caller.principal === ANONYMOUS.principal || !server.takesToken
        ? ''
        : `#principal:${caller.principal}`;
    case 'token':
      return '';
  }
}
