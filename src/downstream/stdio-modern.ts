import { GatewayError } from '../base/errors.js';
import type { EventSink } from '../pipeline/events.js';
import type { AgentProfile, Caller } from '../pipeline/exchange.js';
import { listenEnd } from '../protocol/subscription-messages.js';
import { JsonError, member } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import { InFlight } from './agent-exchange.js';
import type { Backend } from './backend.js';
import { errorBytes, type Failure, failureOf } from './errors.js';
import { ModernAgent, ModernExchange } from './modern-exchange.js';
import { isModern, ModernRequests } from './modern-request.js';
import type { PipeOutlet } from './reply.js';
import { withOwnId } from './session.js';

export interface StdioModernOptions {
  readonly serverId: string;
  readonly backend: Backend;
  readonly emit: EventSink;
  readonly outlet: PipeOutlet;
  /** One request more is under way. */
  readonly began: () => void;
  /** One request less is. */
  readonly ended: () => void;
}

const LISTEN = 'subscriptions/listen';

/**
 * What an agent on stdio asks in 2026-07-28: each request for itself, whether or not there was an `initialize`. Nothing
 * but answers and notifications is ever written for it.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio
 */
export class StdioModern {
  readonly #options: StdioModernOptions;
  readonly #requests = new ModernRequests();
  readonly #inFlight = new InFlight<ModernExchange>();
  /** What the latest request said of its agent. */
  #profile: AgentProfile | undefined;

  constructor(options: StdioModernOptions) {
    this.#options = options;
  }

  /** Takes a request to its server. Never throws: what is wrong with it is answered. */
  take(message: Message, caller: Caller): void {
    const { serverId, outlet } = this.#options;
    let exchange: ModernExchange;
    try {
      const request = this.#requests.read(message);
      this.#profile = request.profile;
      exchange = new ModernExchange({
        ...{ serverId, message, request, caller, fresh: false },
        outlet: message.method === LISTEN ? { send: (bytes) => this.#tell(exchange, bytes) } : outlet,
        dropped: this.#dropped,
      });
    } catch (error) {
      return outlet.answer(errorBytes(this.#failure(error), message.id));
    }
    void this.#run(exchange);
  }

  /**
   * Takes a notification if it is one of this era. `others` tells how many requests with an id are under way in the
   * other one: agents have one series of ids. `alone`: there is no session that it could belong to.
   */
  takeNotification(
    message: Message,
    caller: Caller,
    others: (id: string) => number,
    alone: boolean,
  ): boolean {
    if (message.method === 'notifications/cancelled') return this.#cancelled(message, others);
    const declared = isModern(message);
    const profile = declared ? this.#requests.notifier(message) : this.#profile;
    if (!profile || !(declared || alone)) return false;
    const { serverId, backend } = this.#options;
    backend.notify(serverId, new ModernAgent(profile, caller), caller, message);
    return true;
  }

  /** Ends every subscription gently: nothing follows on them. */
  endSubscriptions(): void {
    for (const exchange of this.#inFlight.all())
      if (exchange.message.method === LISTEN) this.#endGently(exchange);
  }

  /** Ends everything under way: with an error, or without a word where there is none. */
  end(why?: GatewayError): void {
    if (why) this.endSubscriptions();
    const reason = why ?? this.#ended('The agent is gone');
    for (const exchange of this.#inFlight.all())
      this.#giveUp(exchange, reason, why && errorBytes(this.#failure(why), exchange.message.id));
  }

  async #run(exchange: ModernExchange): Promise<void> {
    const { id } = exchange.message;
    this.#inFlight.add(exchange);
    this.#options.began();
    let answer: Buffer;
    try {
      answer = withOwnId(await this.#options.backend.handle(exchange), id);
    } catch (error) {
      if (exchange.over) return;
      answer = errorBytes(this.#failure(error), id);
    }
    if (exchange.over) return;
    exchange.finish();
    this.#options.outlet.answer(answer);
    this.#forget(exchange);
  }

  /** An agent that leaves too much unread would miss what a subscription tells: it must know that. */
  #tell(subscription: ModernExchange, bytes: Buffer): boolean {
    const sent = this.#options.outlet.send(bytes);
    if (!sent) this.#endGently(subscription);
    return sent;
  }

  /** False where no request of this era is meant. */
  #cancelled(message: Message, others: (id: string) => number): boolean {
    const id = requestIdOf(message);
    const mine = id === undefined ? 0 : this.#inFlight.count(id);
    if (id === undefined || mine === 0) return false;
    const exchange = others(id) === 0 ? this.#inFlight.only(id) : undefined;
    if (exchange) this.#giveUp(exchange, message);
    return true;
  }

  #endGently(subscription: ModernExchange): void {
    const end = listenEnd(subscription.message.id);
    this.#giveUp(subscription, this.#ended('The subscription was ended'), end);
  }

  #giveUp(exchange: ModernExchange, reason: unknown, answer?: Buffer): void {
    if (exchange.over) return;
    if (answer) this.#options.outlet.answer(answer);
    exchange.abort(reason);
    this.#forget(exchange);
  }

  #forget(exchange: ModernExchange): void {
    this.#inFlight.delete(exchange);
    this.#options.ended();
  }

  #ended(why: string): GatewayError {
    return new GatewayError('cancelled', why, { serverId: this.#options.serverId });
  }

  #failure(error: unknown): Failure {
    const { serverId, emit } = this.#options;
    if (!(error instanceof GatewayError)) {
      const what = error instanceof Error ? (error.stack ?? error.name) : typeof error;
      emit({ type: 'warning', serverId, message: `Unexpected failure: ${what}` });
    }
    return failureOf(error, serverId);
  }

  readonly #dropped = ({ method }: Message, why: string): void => {
    const { serverId, emit } = this.#options;
    emit({ type: 'message_dropped', serverId, method, why });
  };
}

/** The id that a withdrawal names, as JSON text; undefined where nobody can tell. */
function requestIdOf({ bytes, params }: Message): string | undefined {
  try {
    const span = params && member(bytes, params.start, 'requestId');
    return span && bytes.toString('utf8', span.start, span.end);
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}
