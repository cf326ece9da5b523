import type { Clock } from '../base/clock.js';
import type { Exchange, Handler } from '../pipeline/exchange.js';
import { request } from '../protocol/compose.js';
import { severity } from '../protocol/log-levels.js';
import type { Message } from '../wire/message.js';
import { readingParams } from './faults.js';
import type { Tell } from './held-level.js';
import { isNews, logLevelOf, onStreamOf, progressTokenOf } from './leg-notices.js';
import { legacyRequest } from './legacy-request.js';
import { bodyOf, isObject } from './members.js';
import type { PseudoAgent } from './pseudo-agents.js';

/** A request waits no longer than this for its server to take a log level. */
const LEVEL_MS = 5_000;

/** One request of a modern agent on a legacy server, and the agent in whose name it goes there. */
export class BridgedRequest {
  readonly upper: Exchange;
  readonly agent: PseudoAgent;
  readonly next: Handler;
  readonly #clock: Clock;

  constructor(upper: Exchange, agent: PseudoAgent, next: Handler, clock: Clock) {
    this.upper = upper;
    this.agent = agent;
    this.next = next;
    this.#clock = clock;
  }

  /** The request as the server understands it. Throws GatewayError `invalid_params`. */
  get message(): Message {
    const { serverId, message } = this.upper;
    return readingParams(serverId, () => legacyRequest(message));
  }

  /** Asks the server; whatever it asks itself is put to a call that may take input. Rejects with GatewayError. */
  plain(message = this.message): Promise<Message> {
    const { upper } = this;
    const token = readingParams(upper.serverId, () => progressTokenOf(message));
    return this.#send(message, upper.signal, (notification) => {
      const told = onStreamOf(upper.message, notification, token);
      if (told) upper.notify(told);
    });
  }

  /** A request of the bridge's own, whose notifications are nobody's. Rejects with GatewayError. */
  own(method: string, params: object, signal = this.upper.signal): Promise<Message> {
    return this.#send(request('1', method, params), signal, () => {});
  }

  /** The server's InitializeResult, from what is known of it. */
  greeting(signal?: AbortSignal): Promise<Message> {
    return this.own('initialize', {}, signal);
  }

  /** Does the request's work while its server logs as verbosely as it asks for. */
  async atLevel(work: () => Promise<Message>): Promise<Message> {
    const { serverId, message } = this.upper;
    const level = readingParams(serverId, () => logLevelOf(message));
    const held = this.agent.level;
    const tell: Tell = (wanted) => this.#setLevel(wanted);
    if (level === undefined || severity(level) < 0) {
      held.relax(tell);
      return await work();
    }
    const release = await held.hold(level, tell);
    try {
      return await work();
    } finally {
      release();
    }
  }

  /** Not in the name of the request, as others need it, too. Never rejects: logs are not worth a request. */
  async #setLevel(level: string): Promise<void> {
    const late = new AbortController();
    const timer = this.#clock.after(LEVEL_MS, () => late.abort());
    try {
      const facts = await this.greeting(late.signal);
      if (!isObject(facts, bodyOf(facts, 'capabilities', 'logging'))) return;
      await this.own('logging/setLevel', { level }, late.signal);
    } catch {
      // The request itself fails for the same reason, or its server says what it likes.
    } finally {
      timer.cancel();
    }
  }

  #send(message: Message, signal: AbortSignal, notify: (notification: Message) => void): Promise<Message> {
    const { upper, agent, next } = this;
    const { serverId, caller, fresh } = upper;
    return agent.during(() =>
      next({
        ...{ era: 'legacy', serverId, message, agent, caller, fresh, signal },
        notify: (notification) =>
          isNews(notification.method) ? agent.notify(notification) : notify(notification),
        // On a channel of several requests the newest is given what another one asks.
        ask: (question, options) => agent.ask(question, options),
      }),
    );
  }
}
