import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { Random } from '../base/random.js';
import { Retries } from '../base/retries.js';
import type { Agent, Caller, Exchange } from '../pipeline/exchange.js';
import { type Filter, filterText, NOTHING, readFilter } from '../protocol/subscription-filter.js';
import { type Message, readMessage } from '../wire/message.js';
import type { Servers } from './deps.js';
import { EnvelopedAgent, envelopeOf, metaText } from './envelope.js';

const REOPEN = { baseMs: 1_000, maxMs: 30_000 };

export interface KeptListenDeps {
  readonly servers: Servers;
  readonly clock: Clock;
  readonly random: Random;
}

export interface KeptListenRequest {
  readonly serverId: string;
  /** Of the legacy era. */
  readonly agent: Agent;
  /** Asked at each opening: the agent's token may be another one by then. */
  readonly caller: () => Caller;
  readonly filter: Filter;
  readonly heard: (message: Message) => void;
  /** It stands again, with this honoured: something may have been missed. */
  readonly returned: (honoured: Filter) => void;
}

/** One `subscriptions/listen` at a modern server in a legacy agent's name, opened anew until `end`. */
export class KeptListen {
  /** What is honoured. Rejects with GatewayError where the first attempt fails. */
  readonly opened: Promise<Filter>;
  readonly #deps: KeptListenDeps;
  readonly #request: KeptListenRequest;
  readonly #retries: Retries;
  #first!: { readonly resolve: (honoured: Filter) => void; readonly reject: (failure: unknown) => void };
  /** Of the attempt that is under way or stands. */
  #attempt = new AbortController();
  #stood = false;
  #stands = false;
  #over = false;

  constructor(deps: KeptListenDeps, request: KeptListenRequest) {
    this.#deps = deps;
    this.#request = request;
    this.#retries = new Retries(deps.clock, deps.random, REOPEN);
    this.opened = new Promise((resolve, reject) => {
      this.#first = { resolve, reject };
    });
    this.opened.catch(() => {});
    this.#open();
  }

  /** True while the server is known to tell. */
  get stands(): boolean {
    return this.#stands;
  }

  /** True when it is not opened any more. */
  get over(): boolean {
    return this.#over;
  }

  end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#stands = false;
    this.#retries.cancel();
    this.#attempt.abort();
    const { serverId } = this.#request;
    this.#first.reject(new GatewayError('cancelled', 'The subscription was ended', { serverId }));
  }

  #open(): void {
    const attempt = new AbortController();
    this.#attempt = attempt;
    this.#deps.servers.handle(this.#exchange(attempt.signal)).then(
      () => this.#ended(undefined),
      (failure: unknown) => this.#ended(failure),
    );
  }

  #exchange(signal: AbortSignal): Exchange {
    const { serverId, agent, caller, filter } = this.#request;
    const params = `{"_meta":${metaText(envelopeOf(agent.profile))},"notifications":${filterText(filter)}}`;
    const text = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":${params}}`;
    const enveloped = new EnvelopedAgent(agent);
    return {
      ...{ era: 'modern', serverId, caller: caller(), agent: enveloped, fresh: false, signal },
      message: readMessage(Buffer.from(text)),
      notify: (message) => {
        if (!signal.aborted) this.#take(message);
      },
      ask: () => enveloped.ask(),
    };
  }

  #take(message: Message): void {
    if (message.method === 'notifications/subscriptions/acknowledged')
      return this.#acknowledged(readFilter(message) ?? NOTHING);
    this.#retries.proved();
    this.#request.heard(message);
  }

  #acknowledged(honoured: Filter): void {
    this.#stands = true;
    this.#retries.stands();
    if (this.#stood) this.#request.returned(honoured);
    this.#stood = true;
    this.#first.resolve(honoured);
  }

  #ended(failure: unknown): void {
    if (this.#over) return;
    this.#stands = false;
    this.#retries.lost();
    const { serverId } = this.#request;
    this.#first.reject(
      failure ??
        new GatewayError('server_unavailable', `Server "${serverId}" ended the subscription`, { serverId }),
    );
    // It is served in its own era from now on.
    if (failure instanceof GatewayError && failure.code === 'other_era') return this.end();
    this.#retries.plan(() => this.#open());
  }
}
