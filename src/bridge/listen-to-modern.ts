import { backoffMs } from '../base/backoff.js';
import type { Clock, Timer } from '../base/clock.js';
import { GatewayError, messageOf } from '../base/errors.js';
import type { Random } from '../base/random.js';
import type { EventSink } from '../pipeline/events.js';
import type { Agent, Caller, Exchange } from '../pipeline/exchange.js';
import { SUBSCRIPTION_ID_META } from '../protocol/meta.js';
import type { ListKind } from '../protocol/methods.js';
import { type Filter, filterText, NOTHING, readFilter } from '../protocol/subscription-filter.js';
import { splice } from '../wire/json.js';
import { memberEdits } from '../wire/members.js';
import { type Message, readMessage } from '../wire/message.js';
import type { Servers } from './deps.js';
import { EnvelopedAgent, envelopeOf, metaText } from './envelope.js';
import { isObject, paramOf } from './members.js';

const ALL_KINDS: ReadonlySet<ListKind> = new Set<ListKind>(['tools', 'prompts', 'resources']);
const RETRY = { baseMs: 1_000, maxMs: 30_000 };

export interface ListenerDeps {
  readonly servers: Servers;
  readonly clock: Clock;
  readonly random: Random;
  readonly emit: EventSink;
}

/**
 * What one legacy agent wants to hear of a modern server: changed lists while it is there, and the resources that it
 * subscribed to, by one `subscriptions/listen` after the other.
 */
export class LegacyListener {
  readonly #deps: ListenerDeps;
  readonly #serverId: string;
  readonly #agent: Agent;
  #caller: Caller;
  #kinds: ReadonlySet<ListKind> = NOTHING.kinds;
  readonly #uris = new Set<string>();
  #current: AbortController | undefined;
  #lastId = 0;
  #failures = 0;
  #retry: Timer | undefined;
  #over = false;

  constructor(deps: ListenerDeps, serverId: string, agent: Agent, caller: Caller) {
    this.#deps = deps;
    this.#serverId = serverId;
    this.#agent = agent;
    this.#caller = caller;
  }

  /** The agent's general stream is open: it hears of changed lists from now on. */
  listen(caller: Caller): void {
    this.#caller = caller;
    if (this.#kinds === ALL_KINDS && this.#current) return;
    this.#kinds = ALL_KINDS;
    this.#reopen().catch(() => this.#again());
  }

  /** Rejects with GatewayError, `invalid_params` where the server does not tell of this resource. */
  async subscribe(uri: string, caller: Caller): Promise<void> {
    this.#caller = caller;
    if (this.#uris.has(uri) && this.#current) return;
    this.#uris.add(uri);
    try {
      const honoured = await this.#reopen();
      if (honoured.uris.has(uri)) return;
    } catch (failure) {
      this.#uris.delete(uri);
      throw failure;
    }
    this.#uris.delete(uri);
    const what = `Server "${this.#serverId}" does not tell of changes of ${uri}`;
    throw new GatewayError('invalid_params', what, { serverId: this.#serverId });
  }

  async unsubscribe(uri: string, caller: Caller): Promise<void> {
    this.#caller = caller;
    if (this.#uris.delete(uri)) await this.#reopen();
  }

  end(): void {
    this.#over = true;
    this.#retry?.cancel();
    this.#current?.abort();
    this.#current = undefined;
  }

  /** Opens a subscription for what is wanted now, and ends the one before when it stands. */
  #reopen(): Promise<Filter> {
    this.#retry?.cancel();
    const opened = new AbortController();
    return new Promise((resolve, reject) => {
      const acknowledged = (honoured: Filter) => {
        this.#failures = 0;
        this.#current?.abort();
        this.#current = opened;
        if (this.#over) opened.abort();
        resolve(honoured);
      };
      const ended = (failure: unknown) => {
        reject(failure);
        if (this.#current !== opened) return;
        this.#current = undefined;
        if (!opened.signal.aborted) this.#again();
      };
      this.#deps.servers
        .handle(this.#request(opened.signal, acknowledged))
        .then(() => ended(new GatewayError('server_unavailable', 'The subscription was ended')), ended);
    });
  }

  #request(signal: AbortSignal, acknowledged: (honoured: Filter) => void): Exchange {
    const meta = metaText(envelopeOf(this.#agent.profile));
    const filter = filterText({ kinds: this.#kinds, uris: this.#uris });
    const params = `{"_meta":${meta},"notifications":${filter}}`;
    const text = `{"jsonrpc":"2.0","id":${++this.#lastId},"method":"subscriptions/listen","params":${params}}`;
    const agent = new EnvelopedAgent(this.#agent);
    const message = readMessage(Buffer.from(text));
    return {
      ...{
        era: 'modern',
        serverId: this.#serverId,
        caller: this.#caller,
        fresh: false,
        signal,
        agent,
        message,
      },
      notify: (notification) => {
        if (notification.method === 'notifications/subscriptions/acknowledged')
          acknowledged(readFilter(notification) ?? NOTHING);
        else if (!signal.aborted) this.#agent.notify(unstamped(notification));
      },
      ask: () => agent.ask(),
    };
  }

  #again(): void {
    if (this.#over) return;
    this.#retry?.cancel();
    const delayMs = backoffMs(++this.#failures, RETRY, this.#deps.random);
    this.#retry = this.#deps.clock.after(delayMs, () => {
      this.#reopen().catch((failure: unknown) => {
        const { emit } = this.#deps;
        const method = 'subscriptions/listen';
        emit({ type: 'message_dropped', serverId: this.#serverId, method, why: messageOf(failure) });
        this.#again();
      });
    });
  }
}

/** A notification without the stamp of the subscription, which means nothing to its agent. */
export function unstamped(message: Message): Message {
  const { bytes, params } = message;
  const meta = paramOf(message, '_meta');
  if (!params || !isObject(message, meta)) return message;
  const edits = memberEdits(bytes, meta.start, { remove: [SUBSCRIPTION_ID_META] });
  if (edits.length === 0) return message;
  const rest = readMessage(splice(bytes, edits));
  const left = paramOf(rest, '_meta');
  const empty = left && /^\{\s*\}$/.test(rest.bytes.toString('utf8', left.start, left.end));
  if (!empty || !rest.params) return rest;
  return readMessage(splice(rest.bytes, memberEdits(rest.bytes, rest.params.start, { remove: ['_meta'] })));
}
