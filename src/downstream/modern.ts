import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../base/errors.js';
import type { EventSink } from '../pipeline/events.js';
import type { Caller } from '../pipeline/exchange.js';
import {
  HEADER_MISMATCH,
  METHOD_NOT_FOUND,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_PROTOCOL_VERSION,
} from '../protocol/codes.js';
import { listenEnd } from '../protocol/subscription-messages.js';
import { errorCodeOf } from '../wire/error-code.js';
import { JsonError } from '../wire/json.js';
import { type Message, MessageError } from '../wire/message.js';
import type { Backend } from './backend.js';
import type { DueList } from './due-list.js';
import { failureOf, shuttingDown } from './errors.js';
import type { Due } from './event-stream.js';
import { ModernAgent, ModernExchange } from './modern-exchange.js';
import { checkStandardHeaders, checkToolHeaders } from './modern-headers.js';
import { ModernReply } from './modern-reply.js';
import { ModernRequests } from './modern-request.js';
import { sendEmpty, sendFailure } from './respond.js';
import { withOwnId } from './session.js';
import type { Sessions } from './sessions.js';

export interface ModernOptions {
  readonly backend: Backend;
  readonly sessions: Sessions;
  readonly keepAlive: DueList<Due>;
  readonly emit: EventSink;
  /** True once no new request is taken. */
  readonly draining: () => boolean;
}

/** One POST with a message of the modern era. */
export interface ModernArrival {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly serverId: string;
  readonly caller: Caller;
  readonly message: Message;
  readonly json: boolean;
  readonly events: boolean;
  readonly fresh: boolean;
}

interface Running {
  readonly exchange: ModernExchange;
  readonly reply: ModernReply;
}

const LISTEN = 'subscriptions/listen';

/**
 * The Streamable HTTP endpoint of 2026-07-28: each request for itself, and nothing remembered between two.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
 */
export class Modern {
  readonly #options: ModernOptions;
  readonly #requests = new ModernRequests();
  readonly #running = new Set<Running>();

  constructor(options: ModernOptions) {
    this.#options = options;
  }

  /** Takes one message. Rejects with MessageError for a response. */
  async take(arrival: ModernArrival): Promise<void> {
    const { res, serverId, message } = arrival;
    if (message.kind === 'notification') return this.#notification(arrival);
    if (message.kind !== 'request')
      throw new MessageError('An agent of 2026-07-28 sends requests and notifications only', false);
    if (this.#options.draining()) return sendFailure(res, shuttingDown(serverId), message.id);
    try {
      await this.#request(arrival);
    } catch (error) {
      if (res.headersSent || res.destroyed) throw error;
      sendFailure(res, failureOf(error, serverId), message.id);
    }
  }

  /** Ends every subscription gently: nothing follows on them. */
  drain(): void {
    for (const running of [...this.#running]) {
      const { message } = running.exchange;
      if (message.method !== LISTEN) continue;
      running.reply.answer(listenEnd(message.id), 200);
      this.#end(running, 'The gateway is shutting down');
    }
  }

  /** Ends everything that is under way with an error. */
  close(why: GatewayError): void {
    for (const running of [...this.#running]) {
      const { serverId, message } = running.exchange;
      running.reply.fail(failureOf(why, serverId), message.id);
      running.exchange.abort(why);
    }
  }

  #notification({ res, serverId, caller, message }: ModernArrival): void {
    // The end of a stream is what takes a request back here.
    if (message.method !== 'notifications/cancelled') {
      const profile = this.#requests.notifier(message);
      this.#options.backend.notify(serverId, new ModernAgent(profile, caller), caller, message);
    }
    sendEmpty(res, 202);
  }

  async #request(arrival: ModernArrival): Promise<void> {
    const { req, message, serverId } = arrival;
    const header = req.headers['mcp-protocol-version'];
    const request = this.#requests.read(message, header === undefined ? undefined : String(header));
    checked(() => checkStandardHeaders(message, req.headers));
    const lasting = message.method === LISTEN;
    if (lasting) this.#options.sessions.admit(serverId);
    const reply = new ModernReply(arrival.res, {
      json: arrival.json && !lasting,
      events: arrival.events,
      keepAlive: this.#options.keepAlive,
      onGone: () => this.#end(running, 'The agent closed the stream'),
    });
    const exchange = new ModernExchange({
      ...arrival,
      request,
      outlet: reply,
      dropped: (dropped, why) => this.#dropped(serverId, dropped, why),
    });
    const running = { exchange, reply };
    await this.#run(running, req, lasting);
  }

  async #run(running: Running, req: IncomingMessage, lasting: boolean): Promise<void> {
    const { exchange, reply } = running;
    const { sessions } = this.#options;
    this.#running.add(running);
    if (lasting) {
      sessions.guestCame(exchange.serverId);
      reply.begin();
    }
    try {
      await this.#answer(running, req);
    } catch (error) {
      if (!exchange.over) reply.fail(this.#failure(error, exchange), exchange.message.id);
    } finally {
      exchange.finish();
      this.#running.delete(running);
      if (lasting) sessions.guestLeft(exchange.serverId);
    }
  }

  async #answer({ exchange, reply }: Running, req: IncomingMessage): Promise<void> {
    const { backend } = this.#options;
    const { message } = exchange;
    if (message.method === 'tools/call') {
      const plan = await backend.mirroredParams(exchange);
      if (plan) checkToolHeaders(plan, message, req.headers);
    }
    if (exchange.over) return;
    const response = await backend.handle(exchange);
    if (exchange.over) return;
    reply.answer(withOwnId(response, message.id), statusOf(response));
  }

  #end({ exchange }: Running, why: string): void {
    exchange.abort(new GatewayError('cancelled', why, { serverId: exchange.serverId }));
  }

  #failure(error: unknown, { serverId }: ModernExchange) {
    if (!(error instanceof GatewayError)) {
      const message = `Unexpected failure: ${error instanceof Error ? (error.stack ?? error.name) : typeof error}`;
      this.#options.emit({ type: 'warning', serverId, message });
    }
    return failureOf(error, serverId);
  }

  #dropped(serverId: string, message: Message, why: string): void {
    this.#options.emit({ type: 'message_dropped', serverId, method: message.method, why });
  }
}

/** Params that name a member twice cannot be compared with anything. */
function checked(check: () => void): void {
  try {
    check();
  } catch (error) {
    if (error instanceof JsonError) throw new GatewayError('invalid_params', error.message, { status: 400 });
    throw error;
  }
}

/** HTTP status of a server's answer: the specification gives some errors one of their own. */
function statusOf(response: Message): number {
  if (response.kind !== 'error') return 200;
  switch (errorCodeOf(response)) {
    case METHOD_NOT_FOUND:
      return 404;
    case HEADER_MISMATCH:
    case MISSING_CLIENT_CAPABILITY:
    case UNSUPPORTED_PROTOCOL_VERSION:
      return 400;
    default:
      return 200;
  }
}
