import type { Clock, Timer } from '../base/clock.js';
import { GatewayError, messageOf } from '../base/errors.js';
import type { Random } from '../base/random.js';
import type { EventSink } from '../pipeline/events.js';
import { Attempts } from './attempts.js';
import type { Connection } from './connection.js';

/** On whose account a connection is made: an agent's request, or ours, to go on listening. */
export type Why = 'asked' | 'own';

export interface StandingDeps {
  readonly serverId: string;
  /** Pool key as it may be shown. */
  readonly shownKey: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly emit: EventSink;
  /** Makes room for a connection; rejects with `at_capacity`. */
  readonly admit: (why: Why) => Promise<void>;
  /** Opens an initialized connection, until `abandoned`. `broken` is called if it breaks by no act of ours. */
  readonly open: (
    abandoned: AbortSignal,
    broken: (connection: Connection, error: GatewayError) => void,
  ) => Promise<Connection>;
  /** True while it must stand though nobody asks anything: agents listen. */
  readonly wanted: () => boolean;
  /** Before anybody uses it. `gap`: news may have been missed since the last one stood. */
  readonly established: (connection: Connection, gap: boolean) => void;
  /** Nothing more comes from it. `broken`: by no act of ours. */
  readonly ended: (broken: boolean) => void;
  /** It is gone, or could not be made. */
  readonly vacant: () => void;
}

/** The connection's owner was closed; nothing of the request ran. */
export class KeeperClosed extends GatewayError {
  constructor(serverId: string) {
    super('server_unavailable', `Server "${serverId}" was closed`, { serverId });
  }
}

/**
 * One connection that stands when it is needed: made once however many ask, made again when it broke and is wanted, and
 * never so fast that a server which is down is hammered.
 */
export class StandingConnection {
  readonly #deps: StandingDeps;
  readonly #attempts: Attempts;
  readonly #closing = new AbortController();
  #current: Connection | undefined;
  #connecting: Promise<Connection> | undefined;
  /** Connections whose session the server gave up, while other requests on them are under way. */
  readonly #retired = new Set<Connection>();
  #lost = false;
  /** Agents were listening while none stood. */
  #missed = false;
  #reconnect: Timer | undefined;

  constructor(deps: StandingDeps) {
    this.#deps = deps;
    this.#attempts = new Attempts(deps.clock, deps.random);
  }

  get current(): Connection | undefined {
    return this.#current;
  }

  get connecting(): boolean {
    return this.#connecting !== undefined;
  }

  /** True while requests are under way on a connection that takes no new ones. */
  get retiring(): boolean {
    return this.#retired.size > 0;
  }

  /** True from when it broke until another one stands. */
  get lost(): boolean {
    return this.#lost;
  }

  /** True while it is too early for another attempt. */
  get resting(): boolean {
    return this.#attempts.resting;
  }

  /** The connection, made now if need be. Soon after an attempt that failed, it fails with the same at once. */
  connect(why: Why = 'asked'): Promise<Connection> {
    if (this.#closing.signal.aborted) return Promise.reject(new KeeperClosed(this.#deps.serverId));
    if (this.#current) return Promise.resolve(this.#current);
    this.#connecting ??= this.#open(why).finally(() => {
      this.#connecting = undefined;
      if (!this.#current) this.#deps.vacant();
    });
    return this.#connecting;
  }

  /** The server may have become another one: its refusal to speak as we do counts no more. */
  reconsider(): void {
    this.#attempts.reconsider();
  }

  /** The server did what it is there for. */
  proved(): void {
    this.#attempts.proved();
  }

  /** The server gave the session up. What else is under way gets its own answer or refusal: that tells more. */
  retire(connection: Connection, failure: GatewayError): void {
    if (connection !== this.#current) return;
    this.#retired.add(connection);
    const underWay = [...connection.exchanges()].map((pending) => pending.answer);
    void Promise.allSettled(underWay)
      .then(() => connection.close())
      .finally(() => {
        this.#retired.delete(connection);
        this.#deps.vacant();
      });
    this.#broke(failure);
  }

  /** Ends it; the next request makes a new one, and so do we if it is wanted and there is room. */
  async disconnect(reason: 'idle' | 'evicted'): Promise<void> {
    const connection = this.#take(reason);
    this.#missed ||= this.#deps.wanted();
    this.keepUp();
    await connection?.close();
  }

  /** Ends it for good, an attempt that is under way too. */
  async close(): Promise<void> {
    this.#closing.abort();
    const connecting = this.#connecting?.catch(() => {});
    const connections = [this.#take('closed'), ...this.#retired];
    await Promise.all([connecting, ...connections.map((connection) => connection?.close())]);
  }

  /** Comes back on our own account as long as it is wanted, ever more rarely while that fails. */
  keepUp(): void {
    this.#reconnect?.cancel();
    if (this.#closing.signal.aborted || !this.#deps.wanted()) return;
    this.#reconnect = this.#deps.clock.after(this.#attempts.nextOwnMs(), () => {
      if (this.#deps.wanted()) this.connect('own').catch(() => this.keepUp());
    });
  }

  async #open(why: Why): Promise<Connection> {
    const tooEarly = this.#attempts.refusal();
    if (tooEarly) throw tooEarly;
    const { clock, emit, serverId, shownKey, admit, established } = this.#deps;
    await admit(why);
    const startedAt = clock.now();
    let connection: Connection;
    try {
      connection = await this.#opened();
    } catch (failure) {
      throw this.#failed(failure);
    }
    emit({ type: 'server_connected', serverId, pool: shownKey, durationMs: clock.now() - startedAt });
    const gap = this.#lost || this.#missed;
    this.#current = connection;
    this.#attempts.connected();
    this.#lost = this.#missed = false;
    established(connection, gap);
    return connection;
  }

  /** A new connection that did not break, and was not closed, while it was being made. */
  async #opened(): Promise<Connection> {
    let end: GatewayError | undefined;
    const connection = await this.#deps.open(this.#closing.signal, (broken, error) => {
      if (broken === this.#current) this.#broke(error);
      else end = error;
    });
    if (this.#closing.signal.aborted) end = new KeeperClosed(this.#deps.serverId);
    if (!end) return connection;
    await connection.close();
    throw end;
  }

  /** Notes that none could be made; returns what those who wait for it are told. */
  #failed(failure: unknown): unknown {
    const { emit, serverId, shownKey } = this.#deps;
    if (this.#closing.signal.aborted) return new KeeperClosed(serverId);
    const retryInMs = this.#attempts.failed(failure);
    const code = failure instanceof GatewayError ? failure.code : 'server_unavailable';
    const message = messageOf(failure);
    if (code !== 'other_era')
      emit({ type: 'server_connect_failed', serverId, pool: shownKey, code, message, retryInMs });
    return this.#attempts.refusal();
  }

  #broke(failure: GatewayError): void {
    this.#current = undefined;
    this.#lost = true;
    this.#attempts.lost();
    this.#ended('lost', failure.message);
    this.keepUp();
    this.#deps.vacant();
  }

  /** Lets go of the connection, which the caller then closes. */
  #take(reason: 'idle' | 'evicted' | 'closed'): Connection | undefined {
    const connection = this.#current;
    this.#reconnect?.cancel();
    this.#current = undefined;
    if (connection) this.#ended(reason, '');
    return connection;
  }

  #ended(reason: 'idle' | 'evicted' | 'closed' | 'lost', message: string): void {
    const { emit, serverId, shownKey, ended } = this.#deps;
    ended(reason === 'lost');
    emit({ type: 'server_disconnected', serverId, pool: shownKey, reason, message });
  }
}
