import type { Clock, Timer } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { Random } from '../base/random.js';
import type { ChangeBus } from '../pipeline/changes.js';
import { type EventSink, withoutSecrets } from '../pipeline/events.js';
import type { Agent, Caller, Exchange } from '../pipeline/exchange.js';
import { poolKeyMatches, shownPoolKey } from '../protocol/pool-key.js';
import { type Era, eraOf } from '../protocol/revisions.js';
import type { HeaderPlan } from '../protocol/tool-headers.js';
import type { Message } from '../wire/message.js';
import { makeRoom } from './capacity.js';
import { type Asking, EraFinder } from './era-finder.js';
import type { Implementation } from './handshake.js';
import {
  canBeAsked,
  connectionKey,
  modernKey,
  ofSession,
  ownKey,
  partitionKey,
  type Sharing,
} from './isolation.js';
import { Keeper } from './keeper.js';
import type { Link, LinkEvents } from './link.js';
import { audienceOf, ModernKeeper } from './modern-keeper.js';
import { KeeperClosed, type Why } from './standing.js';
import { ToolPlans } from './tool-plans.js';

/** What the pool must know of a configured server. */
export interface PooledServer extends Sharing {
  /** What is sent to it whoever asks, and must not be shown. */
  readonly secrets: readonly string[];
  /** Which era it is spoken to in; `auto`: each agent's own where the server speaks it. */
  readonly era: Era | 'auto';
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

/** Where one agent is attached, by server, and the keepers that serve it alone. */
interface Home {
  readonly at: Map<string, Keeper>;
  readonly own: Set<Keeper>;
}

/** Keepers that hold nothing but the knowledge of a failed attempt: more of them are forgotten early. */
const MAX_RESTING = 100;

/** All upstream connections, one keeper for each pool key. */
export class Pool {
  readonly #deps: PoolDeps;
  readonly #keepers = new Map<string, Keeper | ModernKeeper>();
  readonly #homes = new Map<string, Home>();
  /** Agents that left: what still comes in their name makes no connection. */
  readonly #left = new WeakSet<Agent>();
  /** Servers that were found to ask their agents. */
  readonly #askers = new Set<string>();
  readonly #resting = new Set<Keeper | ModernKeeper>();
  readonly #eras: EraFinder;
  readonly #plans: ToolPlans;
  readonly #endings = new Set<Promise<void>>();
  #sweep: Timer | undefined;
  #closed = false;

  constructor(deps: PoolDeps) {
    this.#deps = deps;
    this.#eras = new EraFinder({
      ...deps,
      pinned: (serverId) => deps.server(serverId).era,
      connect: ({ serverId, agent, caller }, suspected) =>
        this.#modern(serverId, agent, caller).ready(suspected),
      proven: (serverId) => this.#isProven(serverId),
    });
    this.#plans = new ToolPlans(deps.emit);
    deps.changes.onChange(({ serverId, kinds }) => {
      if (kinds.length === 0 || kinds.includes('tools')) this.#plans.forget(serverId);
    });
  }

  /** Connections that stand or are being made. */
  get size(): number {
    let open = 0;
    for (const keeper of this.#keepers.values()) if (keeper.open) open++;
    return open;
  }

  /** Pool keys of which anything is remembered. */
  get keys(): number {
    return this.#keepers.size;
  }

  /** Where the lists that an agent may be given live: the pool key without what only separates connections. */
  partitionOf(serverId: string, agent: Agent, caller: Caller): string {
    return partitionKey(this.#deps.server(serverId), agent, caller);
  }

  /** The era in which agents of an era are served; undefined: not found out yet. */
  recall(serverId: string, era: Era): Era | undefined {
    return this.#eras.recall(serverId, era);
  }

  /**
   * Finds out by connecting whether a server speaks the modern era. For a legacy agent: after its `initialize` was
   * refused. Rejects with GatewayError where nothing tells.
   */
  find(asking: Asking & Pick<Exchange, 'era'>): Promise<Era> {
    return this.#eras.find(asking, asking.era);
  }

  /** How a tool's arguments are mirrored in headers, as far as its list was seen. */
  headerPlan({ serverId, agent, caller }: Exchange, tool: string): HeaderPlan | undefined {
    const key = modernKey(this.#deps.server(serverId), agent, caller);
    return this.#plans.find(serverId, audienceOf(key, agent.profile), tool);
  }

  /** Learns from a list of tools that a modern agent was given in another way than by `handle`. */
  listed({ serverId, agent, caller }: Exchange, answer: Message): void {
    const key = modernKey(this.#deps.server(serverId), agent, caller);
    this.#plans.learn(serverId, audienceOf(key, agent.profile), answer, false);
  }

  /** Rejects with GatewayError. */
  async handle(exchange: Exchange): Promise<Message> {
    const { serverId } = exchange;
    for (;;) {
      try {
        return await this.#send(exchange);
      } catch (failure) {
        // It did not run, or may run again: a new connection takes it over.
        if (failure instanceof KeeperClosed && !this.#closed && !exchange.signal.aborted) continue;
        throw this.#deps.server(serverId).takesToken ? failure : withoutChallenge(failure);
      }
    }
  }

  notify(serverId: string, agent: Agent, caller: Caller, message: Message): void {
    if (eraOf(agent.profile.revision) === 'modern') this.#modern(serverId, agent, caller).notify(message);
    else this.#lease(serverId, agent, caller).notify(message);
  }

  listen(serverId: string, agent: Agent, caller: Caller): void {
    this.#lease(serverId, agent, caller).listen(agent);
  }

  /** The agent is gone: what it asked of servers is withdrawn, and a connection of its own is ended. */
  leave(agent: Agent): void {
    this.#left.add(agent);
    const home = this.#homes.get(agent.id);
    this.#homes.delete(agent.id);
    for (const keeper of home?.at.values() ?? []) {
      keeper.detach(agent);
      this.#release(keeper);
    }
    for (const keeper of home?.own ?? []) void this.#remove(keeper);
  }

  /** Ends every connection of a server, or those of one pool key, and forgets what is known of them. */
  async close(idOrKey: string): Promise<void> {
    this.#eras.forget(idOrKey);
    const ending = [...this.#keepers.values()].filter(({ key }) => poolKeyMatches(key, idOrKey));
    await Promise.all(ending.map((keeper) => this.#remove(keeper)));
  }

  /** Ends everything, also what is being ended already. */
  async closeAll(): Promise<void> {
    this.#closed = true;
    this.#stopSweep();
    for (const keeper of [...this.#keepers.values()]) void this.#remove(keeper);
    await Promise.all(this.#endings);
  }

  /** The keeper of a request; an agent whose token changed takes along what it had asked for. */
  #lease(serverId: string, agent: Agent, caller: Caller): Keeper {
    if (this.#left.has(agent)) throw new GatewayError('cancelled', 'The agent is gone', { serverId });
    const server = this.#deps.server(serverId);
    const home = this.#homeOf(agent);
    const keeper = this.#keeper(server, agent, caller);
    if (keeper.owner !== undefined) home.own.add(keeper);
    this.#resting.delete(keeper);
    const before = home.at.get(serverId);
    if (before === keeper) return keeper;
    keeper.attach(agent, before?.detach(agent));
    home.at.set(serverId, keeper);
    if (before) this.#release(before);
    return keeper;
  }

  #send(exchange: Exchange): Promise<Message> {
    const { serverId, era, agent, caller, message } = exchange;
    if (era === 'modern')
      return this.#eras.modern(exchange, () => this.#modern(serverId, agent, caller).handle(exchange));
    const send = async () => await this.#lease(serverId, agent, caller).handle(exchange);
    // Whoever sends `initialize` looks himself at how it was refused.
    return message.method === 'initialize' ? send() : this.#eras.legacy(exchange, send);
  }

  #isProven(serverId: string): boolean {
    for (const keeper of this.#keepers.values())
      if (keeper instanceof ModernKeeper && keeper.serverId === serverId && keeper.proven) return true;
    return false;
  }

  #modern(serverId: string, agent: Agent, caller: Caller): ModernKeeper {
    const server = this.#deps.server(serverId);
    const key = modernKey(server, agent, caller);
    const known = this.#keepers.get(key) as ModernKeeper | undefined;
    if (known) {
      this.#resting.delete(known);
      return known;
    }
    const keeper = this.#makeModern(key, server, caller);
    this.#keepers.set(key, keeper);
    this.#scheduleSweep();
    return keeper;
  }

  #homeOf(agent: Agent): Home {
    let home = this.#homes.get(agent.id);
    if (!home) {
      home = { at: new Map(), own: new Set() };
      this.#homes.set(agent.id, home);
    }
    return home;
  }

  #keeper(server: PooledServer, agent: Agent, caller: Caller): Keeper {
    const own = server.isolate === 'auto' && this.#askers.has(server.id) && canBeAsked(agent);
    const key = own ? ownKey(server, agent, caller) : connectionKey(server, agent, caller);
    let keeper = this.#keepers.get(key) as Keeper | undefined;
    if (!keeper) {
      keeper = this.#make(key, server, agent, caller, own);
      this.#keepers.set(key, keeper);
      this.#scheduleSweep();
    }
    return keeper;
  }

  #make(key: string, server: PooledServer, agent: Agent, caller: Caller, own: boolean): Keeper {
    return new Keeper({
      ...this.#common(key, server, caller),
      profile: agent.profile,
      owner: own || server.isolate === 'session' ? agent.id : undefined,
      lasting: server.isolate === 'session',
      asksAgents: () => this.#separate(server),
      initialized: () => this.#eras.confirmLegacy(server.id),
    });
  }

  #makeModern(key: string, server: PooledServer, caller: Caller): ModernKeeper {
    const expected = server.era === 'modern';
    return new ModernKeeper({ ...this.#common(key, server, caller), plans: this.#plans, expected });
  }

  /** What keepers of both eras need. */
  #common(key: string, server: PooledServer, caller: Caller) {
    if (this.#closed) throw new GatewayError('shutting_down', 'The gateway is shutting down');
    const token = server.takesToken ? caller.token : undefined;
    const secrets = token === undefined ? server.secrets : [...server.secrets, token];
    return {
      ...this.#deps,
      emit: withoutSecrets(this.#deps.emit, secrets),
      secrets,
      key,
      serverId: server.id,
      shownKey: shownPoolKey(key),
      openLink: (events: LinkEvents, signal: AbortSignal) =>
        this.#deps.openLink(server.id, token, events, signal),
      limits: { idleMs: server.requestTimeoutMs, totalMs: server.maxRequestTimeoutMs },
      connectTimeoutMs: server.connectTimeoutMs,
      admit: async (keeper: Keeper | ModernKeeper, why: Why) => {
        const caps = { ofServer: server.maxConnections, overall: this.#deps.maxConnections };
        const victim = makeRoom(keeper, [...this.#keepers.values()], caps, why);
        if (victim) await this.#disconnect(victim, 'evicted');
      },
      vacant: (keeper: Keeper | ModernKeeper) => this.#release(keeper),
    };
  }

  /**
   * A server that asks its agents, for their roots say, takes a connection for one agent's. From now on each agent that
   * can be asked gets one of its own; where a connection has a single agent so far, it is that one's.
   */
  #separate({ id, isolate }: PooledServer): void {
    if (isolate !== 'auto' || this.#askers.has(id)) return;
    this.#askers.add(id);
    const message = `Server "${id}" asks its agents: each that can be asked now gets a connection of its own`;
    this.#deps.emit({ type: 'warning', serverId: id, message });
    for (const keeper of [...this.#keepers.values()]) {
      if (keeper instanceof ModernKeeper) continue;
      const only = keeper.serverId === id ? keeper.audience.only() : undefined;
      if (!only || !canBeAsked(only)) continue;
      this.#keepers.delete(keeper.key);
      keeper.claim(keeper.key + ofSession(only), only);
      this.#keepers.set(keeper.key, keeper);
      this.#homeOf(only).own.add(keeper);
    }
  }

  async #disconnect(keeper: Keeper | ModernKeeper, reason: 'idle' | 'evicted'): Promise<void> {
    const ended = this.#track(keeper.disconnect(reason));
    this.#release(keeper);
    await ended;
  }

  /** Forgets a keeper that holds nothing any more; a few are kept as long as they know when to try again. */
  #release(keeper: Keeper | ModernKeeper): void {
    if (keeper.needed || this.#keepers.get(keeper.key) !== keeper) return;
    if (!keeper.resting) return void this.#remove(keeper);
    this.#resting.add(keeper);
    const [oldest] = this.#resting;
    if (oldest && this.#resting.size > MAX_RESTING) void this.#remove(oldest);
  }

  #remove(keeper: Keeper | ModernKeeper): Promise<void> {
    if (this.#keepers.get(keeper.key) === keeper) this.#keepers.delete(keeper.key);
    this.#resting.delete(keeper);
    if (keeper.owner !== undefined) this.#homes.get(keeper.owner)?.own.delete(keeper);
    if (this.#keepers.size === 0) this.#stopSweep();
    return this.#track(keeper.close());
  }

  /** Whatever is being ended is waited for when everything is. */
  #track(ending: Promise<void>): Promise<void> {
    const tracked = ending.finally(() => this.#endings.delete(tracked));
    this.#endings.add(tracked);
    return tracked;
  }

  #scheduleSweep(): void {
    if (this.#sweep || this.#closed) return;
    this.#sweep = this.#deps.clock.after(Math.max(1, this.#deps.connectionIdleMs / 4), () => {
      this.#sweep = undefined;
      this.#endIdle();
      if (this.#keepers.size > 0) this.#scheduleSweep();
    });
  }

  #stopSweep(): void {
    this.#sweep?.cancel();
    this.#sweep = undefined;
  }

  #endIdle(): void {
    const before = this.#deps.clock.now() - this.#deps.connectionIdleMs;
    for (const keeper of [...this.#keepers.values()])
      if (!keeper.inUse && keeper.lastUsedAt <= before) void this.#disconnect(keeper, 'idle');
  }
}

/** How a server refused a credential of the operator's is none of the agent's business: it cannot bring a better one. */
function withoutChallenge(failure: unknown): unknown {
  if (!(failure instanceof GatewayError) || failure.code !== 'unauthorized') return failure;
  const { serverId } = failure.details;
  const message = `${failure.message}, which is the one that the gateway is configured with`;
  return new GatewayError('unauthorized', message, {
    ...(serverId === undefined ? {} : { serverId }),
    cause: failure,
  });
}
