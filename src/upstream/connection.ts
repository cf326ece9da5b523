import { GatewayError, messageOf } from '../base/errors.js';
import type { EventSink } from '../pipeline/events.js';
import type { AgentProfile, Exchange } from '../pipeline/exchange.js';
import { notification } from '../protocol/compose.js';
import type { Message } from '../wire/message.js';
import { type ConnectLimits, connectBound } from './connect-bound.js';
import { GivenUp } from './given-up.js';
import {
  type Implementation,
  initializeParams,
  readInitializeResult,
  type ServerFacts,
} from './handshake.js';
import type { Link, LinkEvents } from './link.js';
import { cancellation, ownRequest, withdrawal } from './own-messages.js';
import { Pending, type RequestLimits } from './pending.js';
import { broken, cancelled, closed, gone, timedOut, unanswered } from './request-failures.js';
import { progressTokenOf, textOf, withIdAndToken } from './rewrite.js';

export interface ConnectionDeps extends ConnectLimits {
  /** What was sent to the server and must not be shown. */
  readonly secrets: readonly string[];
  readonly emit: EventSink;
  readonly limits: RequestLimits;
  readonly us: Implementation;
  /** Takes every notification and request of the server, in order; also those that come during the handshake. */
  readonly inbound: (connection: Connection, message: Message, origin: Pending | undefined) => void;
  /** Called for each answer to an agent before anything that the server sends behind it. */
  readonly answered: (pending: Pending, exchange: Exchange, answer: Message) => void;
  readonly streamLost: () => void;
  readonly closed: (connection: Connection, error: GatewayError) => void;
}

export type OpenLink = (events: LinkEvents, signal: AbortSignal) => Promise<Link>;

/**
 * One initialized link: gives every request an id and a progress token of its own, and brings each answer back to the
 * request it belongs to.
 */
export class Connection {
  readonly #deps: ConnectionDeps;
  readonly #pending = new Map<string, Pending>();
  readonly #givenUp: GivenUp;
  #link!: Link;
  /** What came while the link was still being opened. */
  #early: (() => void)[] = [];
  #facts!: ServerFacts;
  #lastId = 0;
  #over = false;

  private constructor(deps: ConnectionDeps) {
    this.#deps = deps;
    this.#givenUp = new GivenUp(deps.clock);
  }

  /** Opens a link and does the handshake, both within `connectTimeoutMs`. */
  static async open(
    openLink: OpenLink,
    profile: AgentProfile,
    alone: boolean,
    deps: ConnectionDeps,
  ): Promise<Connection> {
    const connection = new Connection(deps);
    if (deps.abandoned.aborted) throw closed(deps.serverId);
    const { signal, gaveUp, settled } = connectBound(deps);
    const connecting = connection.#connect(openLink, profile, alone, signal);
    try {
      await Promise.race([connecting, gaveUp]);
      return connection;
    } catch (error) {
      await connection.close();
      // A link that was still being opened is closed when it comes.
      await connecting.catch(() => {});
      throw error;
    } finally {
      settled();
    }
  }

  get facts(): ServerFacts {
    return this.#facts;
  }

  get kind(): Link['kind'] {
    return this.#link.kind;
  }

  get inFlight(): number {
    return this.#pending.size;
  }

  /** Exchanges of agents that wait for an answer, oldest first. */
  *exchanges(): Generator<Pending & { readonly exchange: Exchange }> {
    for (const pending of this.#pending.values())
      if (pending.exchange) yield pending as Pending & { readonly exchange: Exchange };
  }

  /** Ids of the agents for whom the server works, or may still work though their request was given up. */
  concerned(): Set<string> {
    const agents = new Set(this.#givenUp.agents());
    for (const { exchange } of this.exchanges()) agents.add(exchange.agent.id);
    return agents;
  }

  pending(wireId: string): Pending | undefined {
    return this.#pending.get(wireId);
  }

  /** Sends an agent's request and answers with the server's response, whose id is ours. */
  async request(exchange: Exchange): Promise<Message> {
    const { message, signal } = exchange;
    if (signal.aborted) throw cancelled(this.#deps.serverId);
    const token = progressTokenOf(message);
    const pending = this.#track(message.method, exchange, token && textOf(message, token));
    const onAbort = () => this.#cancel(pending, signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      this.#transmit(pending, withIdAndToken(message, pending.wireId, token, pending.wireId));
      return await pending.answer;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** A request of the gateway's own. `params` is JSON text. */
  ask(method: string, params: string): Promise<Message> {
    const pending = this.#track(method, undefined, undefined);
    this.#transmit(pending, ownRequest(pending.wireId, method, params));
    return pending.answer;
  }

  /** Sends a notification or a response; a failure is an event, since nobody waits for it. */
  post(message: Message): void {
    if (this.#over) return this.#dropped(message, 'the connection is closed');
    this.#link.send(message).catch((error: unknown) => this.#dropped(message, messageOf(error)));
  }

  async close(): Promise<void> {
    this.#end(closed(this.#deps.serverId));
    await (this.#link as Link | undefined)?.close();
  }

  async #connect(
    openLink: OpenLink,
    profile: AgentProfile,
    alone: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const link = await openLink(this.#events(), signal);
    if (signal.aborted) return link.close();
    this.#link = link;
    for (const receive of this.#early.splice(0)) receive();
    const params = initializeParams(profile, this.#deps.us, alone);
    const { serverId, secrets } = this.#deps;
    this.#facts = readInitializeResult(serverId, await this.ask('initialize', params), secrets);
    await link.send(notification('notifications/initialized'));
    link.established(this.#facts.revision);
  }

  #events(): LinkEvents {
    return {
      message: (message, origin) => {
        if ((this.#link as Link | undefined) === undefined)
          this.#early.push(() => this.#receive(message, origin));
        else this.#receive(message, origin);
      },
      streamLost: () => {
        if (!this.#over) this.#deps.streamLost();
      },
      closed: (error) => {
        if (this.#over) return;
        this.#over = true;
        // What could not be sent any more is told so first, by its own `send`: it certainly did not run.
        queueMicrotask(() => this.#end(error));
        this.#deps.closed(this, error);
      },
    };
  }

  #track(method: string, exchange: Exchange | undefined, progressToken: string | undefined): Pending {
    const wireId = String(++this.#lastId);
    const { clock, limits, connectTimeoutMs } = this.#deps;
    const handshake = { idleMs: connectTimeoutMs, totalMs: connectTimeoutMs };
    const pending = new Pending(
      { wireId, method, exchange, progressToken },
      clock,
      method === 'initialize' && !exchange ? handshake : limits,
      (late, elapsedMs) => this.#late(late, elapsedMs),
    );
    this.#pending.set(wireId, pending);
    return pending;
  }

  #transmit(pending: Pending, message: Message): void {
    if (this.#over) return this.#fail(pending, gone(this.#deps.serverId));
    this.#link.send(message, pending.failed.signal).then(
      () => {
        if (this.#link.kind === 'http' && !pending.settled)
          this.#fail(pending, unanswered(this.#deps.serverId, pending.method));
      },
      (error: unknown) => this.#fail(pending, this.#explained(pending, error)),
    );
  }

  #receive(message: Message, origin: string | undefined): void {
    if (this.#over) return;
    if (message.kind === 'notification' || message.kind === 'request') {
      const pending = origin === undefined ? undefined : this.#pending.get(origin);
      return this.#deps.inbound(this, message, pending);
    }
    const pending = this.#pending.get(message.id);
    if (!pending) {
      this.#givenUp.answered(message.id);
      return this.#dropped(message, 'no request of that id is waiting');
    }
    this.#pending.delete(pending.wireId);
    if (pending.exchange) this.#deps.answered(pending, pending.exchange, message);
    pending.resolve(message);
  }

  #cancel(pending: Pending, reason: unknown): void {
    if (pending.settled) return;
    this.#giveUp(pending, cancellation(pending.wireId, reason), cancelled(this.#deps.serverId));
  }

  #late(pending: Pending, elapsedMs: number): void {
    const failure = timedOut(this.#deps.serverId, pending.method, elapsedMs);
    if (pending.method === 'initialize') return this.#fail(pending, failure);
    this.#giveUp(pending, withdrawal(pending.wireId, 'Time-out'), failure);
  }

  #giveUp(pending: Pending, told: Message, failure: GatewayError): void {
    if (pending.exchange) this.#givenUp.note(pending.wireId, pending.exchange.agent.id);
    this.post(told);
    this.#fail(pending, failure);
  }

  #fail(pending: Pending, error: unknown): void {
    this.#pending.delete(pending.wireId);
    pending.reject(error);
    pending.failed.abort();
  }

  #end(error: GatewayError): void {
    this.#over = true;
    const { serverId } = this.#deps;
    for (const pending of [...this.#pending.values()])
      this.#fail(pending, broken(serverId, pending.method, error));
  }

  #explained(pending: Pending, error: unknown): unknown {
    const unknown = error instanceof GatewayError && error.code === 'outcome_unknown';
    return unknown ? broken(this.#deps.serverId, pending.method, error) : error;
  }

  #dropped(message: Message, why: string): void {
    const method = message.method || 'response';
    this.#deps.emit({ type: 'message_dropped', serverId: this.#deps.serverId, method, why });
  }
}
