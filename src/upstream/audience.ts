import type { Clock } from '../base/clock.js';
import type { Agent } from '../pipeline/exchange.js';
import { severity } from '../protocol/log-levels.js';
import { concerns } from '../protocol/subscription-filter.js';
import { Notices } from './notices.js';

/** What one agent wants to hear from a server. */
interface Listener {
  readonly agent: Agent;
  readonly uris: Set<string>;
  /** Those of them that the server was asked for and has not agreed to yet. */
  readonly asked: Set<string>;
  /** Made when there is something to tell. */
  notices: Notices | undefined;
  /** Undefined until the agent sets one: then it hears whatever the server sends. */
  level: string | undefined;
}

/** What an agent takes along when it moves to another connection. */
export type Wanted = Pick<Listener, 'level' | 'notices'> & { readonly uris: ReadonlySet<string> };

/** The agents attached to one server connection, and what each of them asked to be told. */
export class Audience {
  readonly #listeners = new Map<string, Listener>();

  get size(): number {
    return this.#listeners.size;
  }

  has(agent: Agent): boolean {
    return this.#listeners.has(agent.id);
  }

  /** `from`: what the agent had asked for on the connection that it leaves, and what it was still to be told there. */
  attach(agent: Agent, from?: Wanted): void {
    if (this.has(agent)) return;
    const uris = new Set(from?.uris);
    this.#listeners.set(agent.id, {
      agent,
      uris,
      asked: new Set(),
      notices: from?.notices,
      level: from?.level,
    });
    from?.notices?.resume();
  }

  /** Removes an agent and tells what it had asked for. */
  detach(agent: Agent): Wanted | undefined {
    const listener = this.#listeners.get(agent.id);
    this.#listeners.delete(agent.id);
    listener?.notices?.pause();
    return listener;
  }

  *agents(): Generator<Agent> {
    for (const { agent } of this.#listeners.values()) yield agent;
  }

  get listening(): boolean {
    for (const agent of this.agents()) if (agent.listening) return true;
    return false;
  }

  /** The agent, where there is exactly one. */
  only(): Agent | undefined {
    return this.size === 1 ? this.agents().next().value : undefined;
  }

  get(agentId: string): Agent | undefined {
    return this.#listeners.get(agentId)?.agent;
  }

  /** What is to be told to an agent of changed lists; undefined for one that is not attached. */
  notices(agent: Agent, clock: Clock): Notices | undefined {
    const listener = this.#listeners.get(agent.id);
    if (listener) listener.notices ??= new Notices(clock);
    return listener?.notices;
  }

  /** Tells an agent now what it would be told a little later. */
  flushNotices(agent: Agent): void {
    this.#listeners.get(agent.id)?.notices?.flush();
  }

  /** Notes a subscription that the server is being asked for; false if it was there. */
  subscribe(agent: Agent, uri: string): boolean {
    const listener = this.#listeners.get(agent.id);
    if (!listener || listener.uris.has(uri)) return false;
    listener.uris.add(uri);
    listener.asked.add(uri);
    return true;
  }

  /** The server agreed to a subscription. */
  subscribed(agent: Agent, uri: string): void {
    this.#listeners.get(agent.id)?.asked.delete(uri);
  }

  unsubscribe(agent: Agent, uri: string): boolean {
    const listener = this.#listeners.get(agent.id);
    listener?.asked.delete(uri);
    return listener?.uris.delete(uri) ?? false;
  }

  hasSubscriber(uri: string): boolean {
    for (const { uris } of this.#listeners.values()) if (uris.has(uri)) return true;
    return false;
  }

  /** Every uri that the server agreed to for at least one agent: a new connection must be given these. */
  watched(): Set<string> {
    const all = new Set<string>();
    for (const { uris, asked } of this.#listeners.values())
      for (const uri of uris) if (!asked.has(uri)) all.add(uri);
    return all;
  }

  /** Who is to hear of an update: a server may name a part of what was subscribed to. */
  subscribers(updated: string): Agent[] {
    const told: Agent[] = [];
    for (const { agent, uris } of this.#listeners.values()) if (concerns(uris, updated)) told.push(agent);
    return told;
  }

  /** Sets an agent's level and returns the one before. */
  setLevel(agent: Agent, level: string | undefined): string | undefined {
    const listener = this.#listeners.get(agent.id);
    const before = listener?.level;
    if (listener) listener.level = level;
    return before;
  }

  /** The most verbose level that any agent set: what the server must be told. */
  level(): string | undefined {
    let lowest: string | undefined;
    for (const { level } of this.#listeners.values())
      if (level !== undefined && (lowest === undefined || severity(level) < severity(lowest))) lowest = level;
    return lowest;
  }

  /** Whether a log message of this level is among those that the agent asked for. */
  wants(agent: Agent, level: string | undefined): boolean {
    const wanted = this.#listeners.get(agent.id)?.level;
    return wanted === undefined || severity(level) < 0 || severity(level) >= severity(wanted);
  }
}
