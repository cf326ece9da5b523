import type { Clock } from '../base/clock.js';
import { GatewayError, messageOf } from '../base/errors.js';
import type { Random } from '../base/random.js';
import type { ChangeBus } from '../pipeline/changes.js';
import type { EventSink } from '../pipeline/events.js';
import type { Agent, AgentProfile, Exchange } from '../pipeline/exchange.js';
import type { Message } from '../wire/message.js';
import { Audience } from './audience.js';
import { Connection, type OpenLink } from './connection.js';
import { type Implementation, InitializeRefused, type ServerFacts } from './handshake.js';
import { Inbound } from './inbound.js';
import { legacyGreeting } from './legacy-greeting.js';
import type { RequestLimits } from './pending.js';
import { mayRepeat } from './repeat.js';
import { answerLocally, type SharedState } from './shared-state.js';
import { StandingConnection, type Why } from './standing.js';

export interface KeeperDeps {
  readonly key: string;
  readonly serverId: string;
  /** Pool key as it may be shown. */
  readonly shownKey: string;
  /** What is sent to the server and must not be shown. */
  readonly secrets: readonly string[];
  readonly profile: AgentProfile;
  /** Id of the one agent that has the connection to itself; undefined where agents share it. */
  readonly owner: string | undefined;
  /** True where the owner counts on what the server remembers of it: the connection stands as long as the owner is there. */
  readonly lasting: boolean;
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
  /** Makes room for a connection, at another's cost only if an agent asks for it; rejects with `at_capacity`. */
  readonly admit: (keeper: Keeper, why: Why) => Promise<void>;
  /** The server asks its agents for what each of them answers in its own way. */
  readonly asksAgents: () => void;
  /** The server answered `initialize`. */
  readonly initialized: () => void;
  /** Its connection is gone, or could not be made: it may be that nobody needs it any more. */
  readonly vacant: (keeper: Keeper) => void;
}

/**
 * Serves the agents of one pool key over one connection, which gets back, when it was lost, everything that they had
 * asked for; and never sends again what may have run.
 */
export class Keeper {
  readonly audience = new Audience();
  lastUsedAt: number;
  #key: string;
  #owner: string | undefined;
  readonly #deps: KeeperDeps;
  readonly #inbound: Inbound;
  readonly #standing: StandingConnection;
  #facts: { readonly known: ServerFacts; readonly at: number } | undefined;
  /** The server no longer takes the credential. */
  #refused = false;

  constructor(deps: KeeperDeps) {
    this.#deps = deps;
    this.#key = deps.key;
    this.#owner = deps.owner;
    this.lastUsedAt = deps.clock.now();
    this.#inbound = new Inbound({ ...deps, audience: this.audience });
    this.#standing = new StandingConnection({
      ...deps,
      admit: (why) => deps.admit(this, why),
      open: (abandoned, broken) => this.#open(abandoned, broken),
      wanted: () => this.audience.listening,
      established: (connection, gap) => this.#established(connection, gap),
      ended: (broken) => this.#ended(broken),
      vacant: () => deps.vacant(this),
    });
  }

  get serverId(): string {
    return this.#deps.serverId;
  }

  get key(): string {
    return this.#key;
  }

  /** From here on one agent, so far the only one attached, has the connection to itself, under another key. */
  claim(key: string, owner: Agent): void {
    this.#key = key;
    this.#owner = owner.id;
  }

  get owner(): string | undefined {
    return this.#owner;
  }

  /** True while it holds, or is making, a link: what the caps count. */
  get open(): boolean {
    return this.#standing.current !== undefined || this.#standing.connecting;
  }

  /** True while a connection stands on which nothing is under way, and which no agent owns. */
  get idle(): boolean {
    return !this.#owned && this.#standing.current?.inFlight === 0;
  }

  /** True while ending the connection would cost somebody something. */
  get inUse(): boolean {
    const underWay = this.#standing.connecting || this.#inFlight > 0;
    return this.#owned || underWay || this.audience.listening;
  }

  /** False once nothing is lost by forgetting it: no agent, and no connection that the next one could use. */
  get needed(): boolean {
    const { current, connecting, retiring } = this.#standing;
    if (this.audience.size > 0 || connecting || retiring) return true;
    return current !== undefined && !(this.#refused && this.#inFlight === 0);
  }

  /** True while it knows that it is too early for another attempt to connect. */
  get resting(): boolean {
    return this.#standing.resting;
  }

  get #owned(): boolean {
    return this.#deps.lasting && this.audience.size > 0;
  }

  get #inFlight(): number {
    return this.#standing.current?.inFlight ?? 0;
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
    this.#standing.connect().then(
      (connection) => connection.post(message),
      (failure: unknown) => this.#dropped(message.method, messageOf(failure)),
    );
  }

  /** An agent holds its general stream open: the server's notifications are wanted from now on. */
  listen(agent: Agent): void {
    this.#touch();
    this.#inbound.heard(agent);
    this.#standing.connect().catch(() => this.#standing.keepUp());
  }

  /** The agent leaves this connection; what only it had asked for is withdrawn from the server. */
  detach(agent: Agent): ReturnType<Audience['detach']> {
    const levelBefore = this.audience.level();
    const wanted = this.audience.detach(agent);
    const level = this.audience.level();
    if (level !== undefined && level !== levelBefore) this.#tell('logging/setLevel', { level });
    // A connection of the agent's own ends soon, and its subscriptions with it.
    if (this.owner !== undefined) return wanted;
    for (const uri of wanted?.uris ?? [])
      if (!this.audience.hasSubscriber(uri)) this.#tell('resources/unsubscribe', { uri });
    return wanted;
  }

  /** Brings what an agent had asked for elsewhere to this connection. */
  attach(agent: Agent, wanted?: ReturnType<Audience['detach']>): void {
    if (this.audience.has(agent)) return;
    const levelBefore = this.audience.level();
    const added = [...(wanted?.uris ?? [])].filter((uri) => !this.audience.hasSubscriber(uri));
    this.audience.attach(agent, wanted);
    const level = this.audience.level();
    if (level !== undefined && level !== levelBefore) this.#tell('logging/setLevel', { level });
    for (const uri of added) this.#tell('resources/subscribe', { uri });
  }

  /** Ends the connection but not the keeper: the next request makes a new one. */
  disconnect(reason: 'idle' | 'evicted'): Promise<void> {
    return this.#standing.disconnect(reason);
  }

  /** Ends it for good: nothing connects again. Who waits for a connection gets KeeperClosed. */
  close(): Promise<void> {
    return this.#standing.close();
  }

  async #initialize(): Promise<Message> {
    const facts = this.#facts;
    const { current, lost } = this.#standing;
    const until = facts ? facts.at + this.#deps.factsTtlMs : 0;
    if (facts && !lost && (current || this.#deps.clock.now() < until)) return facts.known.answer;
    try {
      return (await this.#standing.connect()).facts.answer;
    } catch (failure) {
      if (failure instanceof InitializeRefused) return failure.answer;
      throw failure;
    }
  }

  #shared(exchange: Exchange): SharedState {
    return {
      exchange,
      audience: this.audience,
      ownerOfTask: (taskId) => this.#inbound.ownerOfTask(taskId),
      tell: (method, params) => this.#tell(method, params),
    };
  }

  async #request(exchange: Exchange): Promise<Message> {
    const connection = await this.#standing.connect();
    try {
      return await this.#send(connection, exchange);
    } catch (failure) {
      if (!(failure instanceof GatewayError) || exchange.signal.aborted) throw failure;
      const stands = connection === this.#standing.current;
      if (!mayRepeat(failure, exchange.message.method, stands)) throw failure;
      if (failure.code === 'session_lost') this.#standing.retire(connection, failure);
      return await this.#send(await this.#standing.connect(), exchange);
    }
  }

  async #send(connection: Connection, exchange: Exchange): Promise<Message> {
    try {
      const answer = await connection.request(exchange);
      this.#standing.proved();
      return answer;
    } catch (failure) {
      if (failure instanceof GatewayError && failure.details.status === 401) this.#refused = true;
      throw failure;
    } finally {
      this.#touch();
    }
  }

  #open(
    abandoned: AbortSignal,
    closed: (connection: Connection, error: GatewayError) => void,
  ): Promise<Connection> {
    const { openLink } = this.#deps;
    return Connection.open(openLink, {
      ...this.#deps,
      greeting: legacyGreeting({ ...this.#deps, alone: this.owner !== undefined }),
      abandoned,
      closed,
      inbound: (connection, message, origin) => this.#inbound.take(connection, message, origin),
      answered: (pending, exchange, answer) => this.#inbound.answered(pending, exchange, answer),
      streamLost: () => this.#deps.doubt(this.serverId),
    });
  }

  #established({ facts }: Connection, gap: boolean): void {
    const before = this.#facts?.known.resultText;
    this.#facts = { known: facts, at: this.#deps.clock.now() };
    this.#refused = false;
    this.#deps.initialized();
    const level = this.audience.level();
    if (level !== undefined) this.#tell('logging/setLevel', { level });
    for (const uri of this.audience.watched()) this.#tell('resources/subscribe', { uri });
    if (gap || (before !== undefined && before !== facts.resultText)) this.#announceReturn(facts);
  }

  /** A server that came back may offer other things: forget first, then tell whoever it promised to tell. */
  #announceReturn(facts: ServerFacts): void {
    this.#deps.changes.publish({ serverId: this.serverId, reason: 'reinitialized', kinds: [] }, () => {
      for (const list of ['tools', 'prompts', 'resources'] as const)
        if (facts.announces(list)) this.#inbound.announce(list);
    });
  }

  #ended(broken: boolean): void {
    this.#inbound.withdrawAll();
    if (broken) this.#deps.doubt(this.serverId);
  }

  /** A request of the gateway's own, on which nothing depends. */
  #tell(method: string, params: object): void {
    this.#standing.current?.ask(method, JSON.stringify(params)).catch((failure: unknown) => {
      this.#dropped(method, messageOf(failure));
    });
  }

  #touch(): void {
    this.lastUsedAt = this.#deps.clock.now();
  }

  #dropped(method: string, why: string): void {
    this.#deps.emit({ type: 'message_dropped', serverId: this.serverId, method, why });
  }
}
