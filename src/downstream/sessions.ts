import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { EventSink } from '../pipeline/events.js';
import { DueList } from './due-list.js';
import type { HttpSession } from './http-session.js';

export interface SessionLimits {
  readonly maxSessions: number;
  /** A session without request or open stream is ended after this long. */
  readonly sessionIdleMs: number;
}

/** What an agent may be silent for before its session is given to a newcomer while the table is full. */
const EVICTABLE_AFTER_MS = 60_000;
const RETRY_AFTER_MS = 5_000;

/** The sessions of one listener. A session is found only once `initialize` has succeeded. */
export class Sessions {
  readonly #limits: SessionLimits;
  readonly #clock: Clock;
  readonly #emit: EventSink;
  readonly #byId = new Map<string, HttpSession>();
  /** Longest unused first. */
  readonly #idle: DueList<HttpSession>;
  /** Agents that are counted here and kept elsewhere. */
  #guests = 0;

  constructor(limits: SessionLimits, clock: Clock, emit: EventSink) {
    this.#limits = limits;
    this.#clock = clock;
    this.#emit = emit;
    this.#idle = new DueList(clock, limits.sessionIdleMs, (session) => {
      if (session.busy) this.#idle.add(session);
      else this.end(session);
    });
  }

  /** Agents at present, those that are still arriving too. */
  get size(): number {
    return this.#byId.size + this.#guests;
  }

  /** Makes room for one more agent. Throws GatewayError `at_capacity`. */
  admit(serverId: string): void {
    if (this.size < this.#limits.maxSessions) return;
    const longestUnused = this.#evictable();
    if (longestUnused) return this.end(longestUnused);
    const details = { serverId, retryAfterMs: RETRY_AFTER_MS };
    throw new GatewayError(
      'at_capacity',
      `${this.#limits.maxSessions} sessions are open, which is the setting maxSessions`,
      details,
    );
  }

  add(session: HttpSession): void {
    this.#byId.set(session.session.id, session);
    this.#idle.add(session);
    this.#tell('session_opened', session.session.serverId);
  }

  /** The session of this id and server, whose `initialize` has succeeded. */
  find(id: string, serverId: string): HttpSession | undefined {
    const found = this.#byId.get(id);
    return found?.session.serverId === serverId && found.session.revision !== undefined ? found : undefined;
  }

  touch(session: HttpSession): void {
    if (!session.session.ended) this.#idle.add(session);
  }

  end(session: HttpSession, why?: GatewayError): void {
    if (!this.#byId.delete(session.session.id)) return;
    this.#idle.delete(session);
    session.end(why);
    this.#tell('session_closed', session.session.serverId);
  }

  /** Counts an agent that has a connection of its own instead of a session here. */
  guestCame(serverId: string): void {
    this.#guests++;
    this.#tell('session_opened', serverId);
  }

  guestLeft(serverId: string): void {
    this.#guests--;
    this.#tell('session_closed', serverId);
  }

  all(): HttpSession[] {
    return [...this.#byId.values()];
  }

  /** Ends every session; the table is not used afterwards. */
  close(why: GatewayError): void {
    for (const session of this.all()) this.end(session, why);
    this.#idle.close();
  }

  #evictable(): HttpSession | undefined {
    const before = this.#clock.now() - EVICTABLE_AFTER_MS;
    for (const [session, sinceAt] of this.#idle.waiting()) {
      if (sinceAt > before) return undefined;
      if (!session.busy) return session;
    }
    return undefined;
  }

  #tell(type: 'session_opened' | 'session_closed', serverId: string): void {
    this.#emit({ type, serverId, sessions: this.size });
  }
}
