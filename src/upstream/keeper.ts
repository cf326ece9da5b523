import { backoffMs } from '../base/backoff.js';
import type { Clock, Timer } from '../base/clock.js';
import { GatewayError, messageOf } from '../base/errors.js';
import type { Random } from '../base/random.js';
import type { ChangeBus } from '../pipeline/changes.js';
import type { EventSink } from '../pipeline/events.js';
import type { Agent, AgentProfile, Exchange } from '../pipeline/exchange.js';
import { notification } from '../protocol/compose.js';
import { isRepeatable } from '../protocol/methods.js';
import type { Message } from '../wire/message.js';
import { Audience } from './audience.js';
import { Connection, type OpenLink } from './connection.js';
import { type Implementation, InitializeRefused, type ServerFacts } from './handshake.js';
import { Inbound } from './inbound.js';
import type { RequestLimits } from './pending.js';
import { answerLocally, type SharedState } from './shared-state.js';

/** Attempts made because an agent asks are held apart a little; those made on our own account much more. */
const ASKED_BACKOFF = { baseMs: 200, maxMs: 5_000 };
const OWN_BACKOFF = { baseMs: 1_000, maxMs: 30_000 };

export interface KeeperDeps {
  readonly key: string;
  readonly serverId: string;
  /** Pool key as it may be shown. */
  readonly shownKey: string;
  readonly profile: AgentProfile;
  /** True where one agent has the connection to itself. */
  readonly alone: boolean;
  readonly openLink: OpenLink;
  readonly limits: RequestLimits;
  readonly connectTimeoutMs: number;
  /** How long an InitializeResult is given to new agents while no connection stands. */
  readonly factsTtlMs: number;
  readonly us: Implementation;
  readonly clock: Clock;
  readonly random: Random;
  readonly emit: EventSink;
  readonly changes: ChangeBus;
  /** The link broke or its notification stream did: what is cached of the server may be out of date. */
  readonly doubt: (serverId: string) => void;
  /** Makes room for a connection; rejects with `at_capacity`. */
  readonly admit: (keeper: Keeper) => Promise<void>;
}

/**
 * Keeps one pool key's connection: makes it when it is needed, once however many ask; makes it again when it was lost,
 * with everything that its agents had asked for; and never sends again what may have run.
 */
export class Keeper {
  readonly audience = new Audience();
  readonly inbound: Inbound;
  lastUsedAt: number;
  readonly #deps: KeeperDeps;
  #connection: Connection | undefined;
  #connecting: Promise<Connection> | undefined;
  #facts: { readonly known: ServerFacts; readonly at: number } | undefined;
  #failures = 0;
  #failedWith: unknown;
  #retryAt = 0;
  #lost = false;
  #reconnect: Timer | undefined;
  #closed = false;

  constructor(deps: KeeperDeps) {
    this.#deps = deps;
    this.lastUsedAt = deps.clock.now();
    this.inbound = new Inbound({ ...deps, audience: this.audience });
  }

  get serverId(): string {
    return this.#deps.serverId;
  }

  get key(): string {
    return this.#deps.key;
  }

  get alone(): boolean {
    return this.#deps.alone;
  }

  /** True while it holds, or is making, a link: what the caps count. */
  get open(): boolean {
    return this.#connection !== undefined || this.#connecting !== undefined;
  }

  get inFlight(): number {
    return this.#connection?.inFlight ?? 0;
  }

  /** True while a connection stands on which nothing is under way, and which no agent owns. */
  get idle(): boolean {
    return !this.#owned && this.#connection !== undefined && this.inFlight === 0;
  }

  /** True while ending the connection would cost somebody something. */
  get inUse(): boolean {
    return this.#owned || this.#connecting !== undefined || this.inFlight > 0 || this.audience.listening;
  }

  get #owned(): boolean {
    return this.#deps.alone && this.audience.size > 0;
  }

  get facts(): ServerFacts | undefined {
    return this.#connection?.facts;
  }

  /** Answers an agent's request; `initialize` from what the server said when we came. */
  async handle(exchange: Exchange): Promise<Message> {
    this.#touch();
    if (exchange.message.method === 'initialize') return await this.#initialize();
    return answerLocally(this.#shared(exchange), () => this.#request(exchange));
  }

  /** Takes an agent's notification to the server. */
  notify(message: Message): void {
    this.#touch();
    this.#connect().then(
      (connection) => connection.post(message),
      (failure: unknown) => this.#dropped(message.method, messageOf(failure)),
    );
  }

  /** An agent holds its general stream open: the server's notifications are wanted from now on. */
  listen(): void {
    this.#touch();
    this.#connect().catch(() => this.#keepUp());
  }

  /** The agent leaves this connection; what only it had asked for is withdrawn from the server. */
  detach(agent: Agent): ReturnType<Audience['detach']> {
    const levelBefore = this.audience.level();
    const wanted = this.audience.detach(agent);
    const level = this.audience.level();
    if (level !== undefined && level !== levelBefore) this.#tell('logging/setLevel', { level });
    for (const uri of wanted?.uris ?? [])
      if (!this.audience.hasSubscriber(uri)) this.#tell('resources/unsubscribe', { uri });
    return wanted;
  }

  /** Brings what an agent had asked for elsewhere to this connection. */
  attach(agent: Agent, wanted?: ReturnType<Audience['detach']>): void {
    if (this.audience.has(agent)) return;
    this.audience.attach(agent, wanted);
    if (!this.#connection || !wanted) return;
    if (wanted.level !== undefined) this.#tell('logging/setLevel', { level: this.audience.level() });
    for (const uri of wanted.uris) this.#tell('resources/subscribe', { uri });
  }

  /** Ends the connection but not the keeper: the next request makes a new one. */
  async disconnect(reason: 'idle' | 'evicted' | 'closed'): Promise<void> {
    const connection = this.#connection;
    this.#reconnect?.cancel();
    this.#connection = undefined;
    if (!connection) return;
    this.inbound.withdrawAll();
    this.#disconnected(reason, '');
    await connection.close();
  }

  /** Ends it for good: nothing connects again. */
  async close(): Promise<void> {
    this.#closed = true;
    const connecting = this.#connecting;
    await this.disconnect('closed');
    await connecting?.then(
      (connection) => connection.close(),
      () => {},
    );
  }

  async #initialize(): Promise<Message> {
    const now = this.#deps.clock.now();
    const facts = this.#facts;
    const usable = facts && !this.#lost && (this.#connection || now < facts.at + this.#deps.factsTtlMs);
    if (usable) return facts.known.answer;
    try {
      return (await this.#connect()).facts.answer;
    } catch (failure) {
      if (failure instanceof InitializeRefused) return failure.answer;
      throw failure;
    }
  }

  #shared(exchange: Exchange): SharedState {
    return {
      exchange,
      audience: this.audience,
      ownerOfTask: (taskId) => this.inbound.ownerOfTask(taskId),
      tell: (method, params) => this.#tell(method, params),
    };
  }

  async #request(exchange: Exchange): Promise<Message> {
    const connection = await this.#connect();
    try {
      return await this.#send(connection, exchange);
    } catch (failure) {
      if (!(failure instanceof GatewayError) || !this.#mayRepeat(failure, exchange)) throw failure;
      if (failure.code === 'session_lost') this.#sessionLost(connection, failure);
      return await this.#send(await this.#connect(), exchange);
    }
  }

  async #send(connection: Connection, exchange: Exchange): Promise<Message> {
    try {
      return await connection.request(exchange);
    } finally {
      this.#touch();
    }
  }

  /** Whether a request that failed may be sent once more: it certainly did not run, or may run twice. */
  #mayRepeat(failure: GatewayError, exchange: Exchange): boolean {
    if (exchange.signal.aborted || this.#closed) return false;
    if (failure.code === 'session_lost') return true;
    return failure.code === 'outcome_unknown' && isRepeatable(exchange.message.method);
  }

  /** The one connection, made now if need be. */
  #connect(): Promise<Connection> {
    if (this.#closed) return Promise.reject(this.#gone());
    if (this.#connection) return Promise.resolve(this.#connection);
    this.#connecting ??= this.#open().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  async #open(): Promise<Connection> {
    const { clock, emit, serverId } = this.#deps;
    if (clock.now() < this.#retryAt) throw this.#failedWith;
    await this.#deps.admit(this);
    const startedAt = clock.now();
    try {
      const connection = await this.#openConnection();
      emit({
        type: 'server_connected',
        serverId,
        pool: this.#deps.shownKey,
        durationMs: clock.now() - startedAt,
      });
      this.#established(connection);
      return connection;
    } catch (failure) {
      this.#failed(failure);
      throw failure;
    }
  }

  #openConnection(): Promise<Connection> {
    const { openLink, profile, alone } = this.#deps;
    return Connection.open(openLink, profile, alone, {
      ...this.#deps,
      inbound: (connection, message, origin) => this.inbound.take(connection, message, origin),
      answered: (pending, exchange, answer) => this.inbound.answered(pending, exchange, answer),
      streamLost: () => this.#deps.doubt(this.serverId),
      closed: (connection, error) => {
        if (connection === this.#connection) this.#connectionLost(error);
      },
    });
  }

  #established(connection: Connection): void {
    if (this.#closed) throw this.#gone();
    const before = this.#facts?.known.resultText;
    const returned = this.#lost || (before !== undefined && before !== connection.facts.resultText);
    this.#connection = connection;
    this.#facts = { known: connection.facts, at: this.#deps.clock.now() };
    this.#failures = 0;
    this.#lost = false;
    const level = this.audience.level();
    if (level !== undefined) this.#tell('logging/setLevel', { level });
    for (const uri of this.audience.watched()) this.#tell('resources/subscribe', { uri });
    if (returned) this.#announceReturn(connection.facts);
  }

  /** A server that came back may offer other things: forget first, then tell whoever it promised to tell. */
  #announceReturn(facts: ServerFacts): void {
    this.#deps.changes.publish({ serverId: this.serverId, reason: 'reinitialized', kinds: [] }, () => {
      for (const list of ['tools', 'prompts', 'resources'] as const) {
        if (!facts.announces(list)) continue;
        for (const agent of this.audience.agents())
          agent.notify(notification(`notifications/${list}/list_changed`));
      }
    });
  }

  #failed(failure: unknown): void {
    if (failure instanceof GatewayError && failure.code === 'at_capacity') return;
    const { clock, random, emit, serverId, shownKey } = this.#deps;
    const retryInMs = backoffMs(++this.#failures, ASKED_BACKOFF, random);
    this.#failedWith = failure;
    this.#retryAt = clock.now() + retryInMs;
    const code = failure instanceof GatewayError ? failure.code : 'server_unavailable';
    emit({
      type: 'server_connect_failed',
      serverId,
      pool: shownKey,
      code,
      message: messageOf(failure),
      retryInMs,
    });
  }

  #sessionLost(connection: Connection, failure: GatewayError): void {
    if (connection !== this.#connection) return;
    this.#connectionLost(failure);
    void connection.close();
  }

  #connectionLost(failure: GatewayError): void {
    this.#connection = undefined;
    this.#lost = true;
    this.inbound.withdrawAll();
    this.#deps.doubt(this.serverId);
    this.#disconnected('lost', failure.message);
    this.#keepUp();
  }

  /** Comes back on its own account as long as somebody listens, ever more rarely while that fails. */
  #keepUp(): void {
    this.#reconnect?.cancel();
    if (this.#closed || !this.audience.listening) return;
    const delayMs = backoffMs(Math.max(1, this.#failures), OWN_BACKOFF, this.#deps.random);
    this.#reconnect = this.#deps.clock.after(delayMs, () => {
      if (this.audience.listening) this.#connect().catch(() => this.#keepUp());
    });
  }

  /** A request of the gateway's own, on which nothing depends. */
  #tell(method: string, params: object): void {
    this.#connection?.ask(method, JSON.stringify(params)).catch((failure: unknown) => {
      this.#dropped(method, messageOf(failure));
    });
  }

  #touch(): void {
    this.lastUsedAt = this.#deps.clock.now();
  }

  #gone(): GatewayError {
    return new GatewayError('server_unavailable', `Server "${this.serverId}" was closed`, {
      serverId: this.serverId,
    });
  }

  #dropped(method: string, why: string): void {
    this.#deps.emit({ type: 'message_dropped', serverId: this.serverId, method, why });
  }

  #disconnected(reason: 'idle' | 'evicted' | 'closed' | 'lost', message: string): void {
    const { emit, serverId, shownKey } = this.#deps;
    emit({ type: 'server_disconnected', serverId, pool: shownKey, reason, message });
  }
}
