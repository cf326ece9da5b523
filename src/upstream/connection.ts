import { GatewayError, messageOf } from '../base/errors.js';
import type { EventSink } from '../pipeline/events.js';
import type { Exchange } from '../pipeline/exchange.js';
import type { Message } from '../wire/message.js';
import { type ConnectLimits, connectBound } from './connect-bound.js';
import { GivenUp } from './given-up.js';
import type { Greeting } from './greeting.js';
import type { ServerFacts } from './handshake.js';
import type { Link, LinkEvents } from './link.js';
import { cancellation, ownRequest, withdrawal } from './own-messages.js';
import { Pending, type RequestLimits } from './pending.js';
import { broken, cancelled, closed, gone, timedOut, unanswered } from './request-failures.js';
import { progressTokenOf, textOf, withIdAndToken } from './rewrite.js';

export interface ConnectionDeps extends Omit<ConnectLimits, 'method'> {
  readonly greeting: Greeting;
  /** Until the greeting is answered over a channel that may swallow it; `connectTimeoutMs` where absent. */
  readonly greetingMs?: number;
  readonly emit: EventSink;
  readonly limits: RequestLimits;
  /** HTTP headers of a message, made anew for each. */
  readonly headersOf?: (message: Message, exchange: Exchange | undefined) => Readonly<Record<string, string>>;
  /** Takes every notification and request of the server, in order; also those that come during the handshake. */
  readonly inbound: (connection: Connection, message: Message, origin: Pending | undefined) => void;
  /** Called for each answer to an agent before anything that the server sends behind it. */
  readonly answered: (pending: Pending, exchange: Exchange, answer: Message) => void;
  readonly streamLost: () => void;
  readonly closed: (connection: Connection, error: GatewayError) => void;
}

export type OpenLink = (events: LinkEvents, signal: AbortSignal) => Promise<Link>;

/**
 * One greeted link: gives every request an id and a progress token of its own, and brings each answer back to the
 * request it belongs to.
 */
export class Connection {
  readonly #deps: ConnectionDeps;
  readonly #pending = new Map<string, Pending>();
  readonly #givenUp: GivenUp;
  #link!: Link;
  /** What came while the link was still being opened. */
  #early: (() => void)[] = [];
  #facts: ServerFacts | undefined;
  #lastId = 0;
  #over = false;

  private constructor(deps: ConnectionDeps) {
    this.#deps = deps;
    this.#givenUp = new GivenUp(deps.clock);
  }

  /** Opens a link and greets the server, both within `connectTimeoutMs`. */
  static async open(openLink: OpenLink, deps: ConnectionDeps): Promise<Connection> {
    const connection = new Connection(deps);
    if (deps.abandoned.aborted) throw closed(deps.serverId);
    const { signal, gaveUp, settled } = connectBound({ ...deps, method: deps.greeting.method });
    const connecting = connection.#connect(openLink, signal);
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

  /** Of an open connection. */
  get facts(): ServerFacts {
    return this.#facts as ServerFacts;
  }

  get kind(): Link['kind'] {
    return this.#link.kind;
  }

  /** Requests under way; those of ours that last are not among them. */
  get inFlight(): number {
    let lasting = 0;
    for (const { listener } of this.#pending.values()) if (listener) lasting++;
    return this.#pending.size - lasting;
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
      const sent = withIdAndToken(message, pending.wireId, token, pending.wireId);
      this.#transmit(pending, sent, this.#deps.headersOf?.(message, exchange));
      return await pending.answer;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** A request of the gateway's own. `params` is JSON text. */
  ask(method: string, params: string): Promise<Message> {
    const pending = this.#track(method, undefined, undefined);
    const message = ownRequest(pending.wireId, method, params);
    this.#transmit(pending, message, this.#deps.headersOf?.(message, undefined));
    return pending.answer;
  }

  /**
   * A request of the gateway's own that lasts: `listener` is given what belongs to it, the promise settles with its
   * end. `params` is JSON text. An abort of `signal` ends it.
   */
  async stream(
    method: string,
    params: string,
    { signal, listener }: { readonly signal: AbortSignal; readonly listener: (message: Message) => void },
  ): Promise<Message> {
    if (signal.aborted) throw cancelled(this.#deps.serverId);
    const pending = this.#track(method, undefined, undefined, listener);
    const onAbort = () => this.#cancel(pending, undefined);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      const message = ownRequest(pending.wireId, method, params);
      this.#transmit(pending, message, this.#deps.headersOf?.(message, undefined));
      return await pending.answer;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Sends a notification or a response; a failure is an event, since nobody waits for it. */
  post(message: Message): void {
    if (this.#over) return this.#dropped(message, 'the connection is closed');
    const headers = this.#deps.headersOf?.(message, undefined);
    this.#link
      .send(message, undefined, headers)
      .catch((error: unknown) => this.#dropped(message, messageOf(error)));
  }

  async close(): Promise<void> {
    this.#end(closed(this.#deps.serverId));
    await (this.#link as Link | undefined)?.close();
  }

  async #connect(openLink: OpenLink, signal: AbortSignal): Promise<void> {
    const link = await openLink(this.#events(), signal);
    if (signal.aborted) return link.close();
    this.#link = link;
    for (const receive of this.#early.splice(0)) receive();
    this.#facts = await this.#deps.greeting.greet(link, (method, params) => this.ask(method, params));
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

  #track(
    method: string,
    exchange: Exchange | undefined,
    progressToken: string | undefined,
    listener?: (message: Message) => void,
  ): Pending {
    const wireId = String(++this.#lastId);
    const { clock, limits } = this.#deps;
    const pending = new Pending(
      { wireId, method, exchange, progressToken, ...(listener ? { listener } : {}) },
      clock,
      listener ? undefined : this.#facts ? limits : this.#greetingLimits(),
      (late, elapsedMs) => this.#late(late, elapsedMs),
    );
    this.#pending.set(wireId, pending);
    return pending;
  }

  #greetingLimits(): RequestLimits {
    const { connectTimeoutMs, greetingMs = connectTimeoutMs } = this.#deps;
    const ms = this.#link.kind === 'http' ? connectTimeoutMs : Math.min(greetingMs, connectTimeoutMs);
    return { idleMs: ms, totalMs: ms };
  }

  #transmit(pending: Pending, message: Message, headers: Readonly<Record<string, string>> | undefined): void {
    if (this.#over) return this.#fail(pending, gone(this.#deps.serverId));
    this.#link.send(message, pending.failed.signal, headers).then(
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
    // A greeting cannot be taken back.
    if (!this.#facts) return this.#fail(pending, failure);
    this.#giveUp(pending, withdrawal(pending.wireId, 'Time-out'), failure);
  }

  #giveUp(pending: Pending, told: Message, failure: GatewayError): void {
    if (pending.exchange) this.#givenUp.note(pending.wireId, pending.exchange.agent.id);
    // Over HTTP the end of its stream is what a modern server takes as the cancellation.
    if (this.#deps.greeting.method === 'initialize' || this.#link.kind !== 'http') this.post(told);
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
