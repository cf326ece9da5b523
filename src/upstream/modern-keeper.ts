import type { Clock } from '../base/clock.js';
import { GatewayError, messageOf } from '../base/errors.js';
import type { Random } from '../base/random.js';
import type { ChangeBus } from '../pipeline/changes.js';
import type { EventSink } from '../pipeline/events.js';
import type { AgentProfile, Exchange } from '../pipeline/exchange.js';
import { HEADER_MISMATCH } from '../protocol/codes.js';
import { cacheableMethod } from '../protocol/methods.js';
import { mirroredHeaders } from '../protocol/tool-headers.js';
import { errorCodeOf } from '../wire/error-code.js';
import type { Message } from '../wire/message.js';
import { Connection, type OpenLink } from './connection.js';
import { mayBeOfLegacy, OTHER_ERA } from './era-signs.js';
import type { Implementation } from './handshake.js';
import { Listening } from './listening.js';
import { modernGreeting, OtherEra, ownMeta } from './modern-greeting.js';
import { standardHeaders } from './modern-headers.js';
import { ModernInbound } from './modern-inbound.js';
import type { RequestLimits } from './pending.js';
import { isRefused } from './refused.js';
import { mayRepeat } from './repeat.js';
import { stringParam } from './rewrite.js';
import { StandingConnection, type Why } from './standing.js';
import { listedAgain } from './tool-listing.js';
import type { ToolPlans } from './tool-plans.js';

export interface ModernKeeperDeps {
  readonly key: string;
  readonly serverId: string;
  /** Pool key as it may be shown. */
  readonly shownKey: string;
  /** What is sent to the server and must not be shown. */
  readonly secrets: readonly string[];
  readonly openLink: OpenLink;
  readonly limits: RequestLimits;
  readonly connectTimeoutMs: number;
  /** True where the server is known to be a modern one: then it has as long to answer as any. */
  readonly expected: boolean;
  readonly us: Implementation;
  readonly clock: Clock;
  readonly random: Random;
  readonly emit: EventSink;
  readonly changes: ChangeBus;
  readonly plans: ToolPlans;
  readonly doubt: (serverId: string) => void;
  readonly admit: (keeper: ModernKeeper, why: Why) => Promise<void>;
  readonly vacant: (keeper: ModernKeeper) => void;
}

/** How long a child may be silent on `server/discover` before it is taken for one that does not know it. */
const PROBE_MS = 5_000;

/**
 * Serves the agents of one pool key on one modern server. Every request stands for itself, so that all that is kept up
 * is the link, and what is heard of changes.
 */
export class ModernKeeper {
  readonly key: string;
  readonly owner: undefined;
  lastUsedAt: number;
  readonly #deps: ModernKeeperDeps;
  readonly #standing: StandingConnection;
  readonly #inbound: ModernInbound;
  readonly #listening: Listening;
  #patient: boolean;

  constructor(deps: ModernKeeperDeps) {
    this.#deps = deps;
    this.#patient = deps.expected;
    this.key = deps.key;
    this.lastUsedAt = deps.clock.now();
    this.#inbound = new ModernInbound(deps);
    this.#listening = new Listening({
      ...deps,
      meta: ownMeta(deps.us),
      connect: () => this.#standing.connect('own'),
    });
    this.#standing = new StandingConnection({
      ...deps,
      admit: (why) => deps.admit(this, why),
      open: (abandoned, broken) => this.#open(abandoned, broken),
      wanted: () => this.#listening.wanted,
      established: () => this.#listening.connected(),
      ended: (broken) => {
        if (broken) deps.doubt(deps.serverId);
      },
      vacant: () => deps.vacant(this),
    });
  }

  /** True while its connection stands. */
  get proven(): boolean {
    return this.#standing.current !== undefined;
  }

  get serverId(): string {
    return this.#deps.serverId;
  }

  get open(): boolean {
    return this.#standing.current !== undefined || this.#standing.connecting;
  }

  get idle(): boolean {
    return this.#standing.current?.inFlight === 0;
  }

  get inUse(): boolean {
    return this.#standing.connecting || this.#inFlight > 0 || this.#listening.wanted;
  }

  get needed(): boolean {
    return this.open || this.#standing.retiring || this.#listening.wanted;
  }

  get resting(): boolean {
    return this.#standing.resting;
  }

  get #inFlight(): number {
    return this.#standing.current?.inFlight ?? 0;
  }

  /**
   * Settles when the server has shown that it speaks the modern era. Rejects with OtherEra where it shows the reverse.
   * `suspected`: there is reason to believe that it does, so that it may only be slow to start, and an earlier refusal
   * says nothing.
   */
  async ready(suspected: boolean): Promise<void> {
    this.#touch();
    this.#patient ||= suspected;
    if (suspected) this.#standing.reconsider();
    await this.#standing.connect();
  }

  async handle(exchange: Exchange): Promise<Message> {
    this.#touch();
    const { method } = exchange.message;
    if (method === 'subscriptions/listen') return await this.#listening.serve(exchange);
    const answer = await this.#request(exchange);
    if (method === 'tools/list') return this.#learn(exchange.agent.profile, answer);
    if (method === 'tools/call' && this.#isMismatch(answer)) return await this.#mirrorAnew(exchange, answer);
    return answer;
  }

  notify(message: Message): void {
    this.#touch();
    this.#standing.connect().then(
      (connection) => connection.post(message),
      (failure: unknown) => this.#dropped(message.method, messageOf(failure)),
    );
  }

  disconnect(reason: 'idle' | 'evicted'): Promise<void> {
    this.#listening.rest();
    return this.#standing.disconnect(reason);
  }

  close(): Promise<void> {
    this.#listening.close();
    return this.#standing.close();
  }

  async #request(exchange: Exchange): Promise<Message> {
    const connection = await this.#standing.connect();
    if (cacheableMethod(exchange.message.method)?.list) this.#listening.keep();
    try {
      return await this.#send(connection, exchange);
    } catch (failure) {
      if (!(failure instanceof GatewayError) || exchange.signal.aborted) throw failure;
      const stands = connection === this.#standing.current;
      if (!mayRepeat(failure, exchange.message.method, stands)) throw failure;
      return await this.#send(await this.#standing.connect(), exchange);
    }
  }

  async #send(connection: Connection, exchange: Exchange): Promise<Message> {
    try {
      const answer = await connection.request(exchange);
      if (mayBeOfLegacy(answer))
        throw this.#otherEra(connection, 'it refuses requests without a session', answer);
      this.#standing.proved();
      return answer;
    } catch (failure) {
      if (!(failure instanceof GatewayError) || failure.code !== 'server_unavailable') throw failure;
      const { status } = failure.details;
      if (status === undefined || !OTHER_ERA.has(status)) throw failure;
      throw this.#otherEra(connection, `it answered ${status}`, failure);
    } finally {
      this.#touch();
    }
  }

  /** It was another server when we came: it must be asked anew who it is. What else is under way may go on. */
  #otherEra(connection: Connection, why: string, evidence: Message | GatewayError): OtherEra {
    const failure = new OtherEra(this.serverId, why, evidence);
    this.#standing.retire(connection, failure);
    return failure;
  }

  #isMismatch(answer: Message): boolean {
    return isRefused(answer) && answer.refusedWith === 400 && errorCodeOf(answer) === HEADER_MISMATCH;
  }

  get #overHttp(): boolean {
    return this.#standing.current?.kind === 'http';
  }

  /**
   * The server refused a call for its headers, so it did not run: the tool's schema is another one than we know, and than
   * what is kept says.
   */
  async #mirrorAnew(exchange: Exchange, refused: Message): Promise<Message> {
    this.#deps.changes.publish({ serverId: this.serverId, reason: 'contradicted', kinds: ['tools'] });
    try {
      await listedAgain(exchange, async (listing) =>
        this.#learn(exchange.agent.profile, await this.#request(listing)),
      );
    } catch (failure) {
      if (failure instanceof GatewayError) return refused;
      throw failure;
    }
    return await this.#request(exchange);
  }

  #learn(profile: AgentProfile, answer: Message): Message {
    const { plans } = this.#deps;
    return plans.learn(this.serverId, audienceOf(this.key, profile), answer, this.#overHttp);
  }

  #open(
    abandoned: AbortSignal,
    closed: (connection: Connection, error: GatewayError) => void,
  ): Promise<Connection> {
    const { openLink, serverId, secrets, us } = this.#deps;
    return Connection.open(openLink, {
      ...this.#deps,
      greeting: modernGreeting(serverId, secrets, us),
      ...(this.#patient ? {} : { greetingMs: PROBE_MS }),
      abandoned,
      closed,
      headersOf: (message, exchange) => this.#headersOf(message, exchange),
      inbound: (connection, message, origin) => this.#inbound.take(connection, message, origin),
      answered: () => {},
      streamLost: () => {},
    });
  }

  #headersOf(message: Message, exchange: Exchange | undefined): Record<string, string> {
    const headers = standardHeaders(message);
    if (!exchange || message.method !== 'tools/call') return headers;
    const tool = stringParam(message, 'name');
    const audience = audienceOf(this.key, exchange.agent.profile);
    const plan = tool === undefined ? undefined : this.#deps.plans.find(this.serverId, audience, tool);
    if (!plan || plan.length === 0) return headers;
    return { ...headers, ...mirroredHeaders(plan, message.bytes, message.params) };
  }

  #touch(): void {
    this.lastUsedAt = this.#deps.clock.now();
  }

  #dropped(method: string, why: string): void {
    this.#deps.emit({ type: 'message_dropped', serverId: this.serverId, method, why });
  }
}

/** Who may be shown the same list of tools: those of one pool key with the same capabilities. */
export function audienceOf(key: string, { fingerprint }: AgentProfile): string {
  return `${key}\n${fingerprint}`;
}
