import { GatewayError } from '../base/errors.js';
import type { EventSink } from '../pipeline/events.js';
import type { Agent, AgentProfile, AskOptions, Caller } from '../pipeline/exchange.js';
import { JsonError, member } from '../wire/json.js';
import { type Message, withId } from '../wire/message.js';
import { AgentExchange, InFlight } from './agent-exchange.js';
import { Asks } from './asks.js';
import type { Backend } from './backend.js';
import { type Failure, failureOf } from './errors.js';
import { News } from './news.js';
import type { Outlet, Reply } from './reply.js';

/**
 * One agent of the legacy era as the rest of the gateway sees it, whatever it is connected by: what it asks, what it is
 * asked, and its general stream. What an idle agent does not need is not made.
 */
export class Session implements Agent {
  readonly id: string;
  readonly serverId: string;
  readonly profile: AgentProfile;
  /** The negotiated revision; undefined until `initialize` is answered. */
  revision: string | undefined;
  readonly #backend: Backend;
  readonly #emit: EventSink;
  #general: Outlet | undefined;
  #news: News | undefined;
  #asks: Asks | undefined;
  #inFlight: InFlight | undefined;
  #ended = false;

  constructor(id: string, serverId: string, profile: AgentProfile, backend: Backend, emit: EventSink) {
    this.id = id;
    this.serverId = serverId;
    this.profile = profile;
    this.#backend = backend;
    this.#emit = emit;
  }

  get listening(): boolean {
    return this.#general !== undefined;
  }

  /** Requests under way. */
  get inFlight(): number {
    return this.#inFlight?.size ?? 0;
  }

  /** Requests under way that have this id, which is JSON text. */
  inFlightOf(id: string): number {
    return this.#inFlight?.count(id) ?? 0;
  }

  get ended(): boolean {
    return this.#ended;
  }

  notify(message: Message): void {
    if (this.sendGeneral(message.bytes)) return;
    if (this.#ended) return this.dropped(message, 'the agent is gone');
    this.#news ??= new News();
    if (!this.#news.keep(message)) this.dropped(message, 'the agent is not listening');
  }

  ask(message: Message, options: AskOptions): Promise<Message> {
    return this.askThrough({ send: (bytes) => this.sendGeneral(bytes) }, message, options);
  }

  /** Asks the agent by way of `outlet`; settles as `Channel.ask` says. */
  async askThrough(outlet: Outlet, message: Message, options: AskOptions): Promise<Message> {
    if (this.#ended)
      throw new GatewayError('agent_unreachable', 'The agent is gone', { serverId: this.serverId });
    this.#asks ??= new Asks(this.serverId);
    return this.#asks.ask(outlet, message, options);
  }

  /** Writes to the general stream. False while there is none. */
  sendGeneral(bytes: Buffer): boolean {
    return this.#general?.send(bytes) ?? false;
  }

  /** The general stream is open: what waited for it is told, and the server is listened to. */
  listen(outlet: Outlet, caller: Caller): void {
    this.#general = outlet;
    for (const bytes of this.#news?.take() ?? []) outlet.send(bytes);
    this.#backend.listen(this.serverId, this, caller);
  }

  /** The general stream is gone, if it is still this one. */
  unlisten(outlet: Outlet): void {
    if (this.#general === outlet) this.#general = undefined;
  }

  /** Takes a request to its server and the answer to `reply`. Never rejects. */
  async request(message: Message, caller: Caller, fresh: boolean, reply: Reply): Promise<void> {
    const exchange = new AgentExchange(this, message, caller, fresh, reply);
    await this.run(exchange, (response) => withOwnId(response, message.id));
  }

  /** Runs an exchange and answers it with what `finish` makes of the response. Never rejects. */
  async run(exchange: AgentExchange, finish: (response: Message) => Buffer): Promise<void> {
    this.#inFlight ??= new InFlight();
    this.#inFlight.add(exchange);
    try {
      const response = await this.#backend.handle(exchange);
      if (!exchange.over) exchange.answer(finish(response));
    } catch (error) {
      if (!exchange.over) exchange.fail(this.#failure(error));
    } finally {
      this.#inFlight.delete(exchange);
    }
  }

  /** Takes what is no request: a notification, or the response to one of ours. Never throws. */
  receive(message: Message, caller: Caller): void {
    if (message.kind !== 'notification') return this.#asks?.settle(message);
    try {
      this.#notification(message, caller);
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
      this.dropped(message, 'its params are ambiguous');
    }
  }

  /** Ends what runs on behalf of one reply that nobody will ever read. */
  abandon(reply: Reply): void {
    for (const exchange of this.#inFlight?.all() ?? [])
      if (exchange.reply === reply)
        this.#abort(
          exchange,
          new GatewayError('cancelled', 'The agent is gone', { serverId: this.serverId }),
        );
  }

  /** Ends everything under way with an error; the session goes on. */
  failAll(error: GatewayError): void {
    const failure = failureOf(error, this.serverId);
    for (const exchange of this.#inFlight?.all() ?? []) this.#abort(exchange, error, failure);
  }

  /** The agent is gone for good. Idempotent. */
  end(why = new GatewayError('cancelled', 'The session was ended', { serverId: this.serverId })): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#general = undefined;
    this.failAll(why);
    this.#asks?.close();
    this.#backend.leave(this);
  }

  dropped(message: Message, why: string): void {
    this.#emit({ type: 'message_dropped', serverId: this.serverId, method: message.method, why });
  }

  #notification(message: Message, caller: Caller): void {
    switch (message.method) {
      // Each upstream connection has a handshake of its own.
      case 'notifications/initialized':
        return;
      case 'notifications/cancelled':
        return this.#cancel(message);
      case 'notifications/progress':
        return this.#asks?.progress(message);
      default:
        this.#backend.notify(this.serverId, this, caller, message);
    }
  }

  #cancel(message: Message): void {
    const span = message.params && member(message.bytes, message.params.start, 'requestId');
    if (!span) return;
    const exchange = this.#inFlight?.only(message.bytes.toString('utf8', span.start, span.end));
    // https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/cancellation#behavior-requirements
    if (!exchange || exchange.message.method === 'initialize') return;
    this.#abort(exchange, message);
  }

  #abort(exchange: AgentExchange, reason: unknown, failure?: Failure): void {
    this.#inFlight?.delete(exchange);
    exchange.abort(reason, failure);
  }

  #failure(error: unknown): Failure {
    if (!(error instanceof GatewayError))
      this.#emit({
        type: 'warning',
        serverId: this.serverId,
        message: `Unexpected failure: ${nameOf(error)}`,
      });
    return failureOf(error, this.serverId);
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.name) : typeof error;
}

/** A response's bytes with the id that the agent used. */
export function withOwnId(response: Message, id: string): Buffer {
  return response.id === id ? response.bytes : withId(response, id);
}
