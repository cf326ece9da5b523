import type { Agent } from '../pipeline/exchange.js';

/** RFC 5424 severities, least severe first. https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging */
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

/** -1 for what is no level. */
export function severity(level: string | undefined): number {
  return level === undefined ? -1 : LEVELS.indexOf(level);
}

/** What one agent wants to hear from a server. */
interface Listener {
  readonly agent: Agent;
  readonly uris: Set<string>;
  /** Undefined until the agent sets one: then it hears whatever the server sends. */
  level: string | undefined;
}

/** The agents attached to one server connection, and what each of them asked to be told. */
export class Audience {
  readonly #listeners = new Map<string, Listener>();

  get size(): number {
    return this.#listeners.size;
  }

  has(agent: Agent): boolean {
    return this.#listeners.has(agent.id);
  }

  /** `from`: what the agent had asked for on the connection that it leaves. */
  attach(agent: Agent, from?: { readonly uris: Iterable<string>; readonly level: string | undefined }): void {
    if (this.has(agent)) return;
    this.#listeners.set(agent.id, { agent, uris: new Set(from?.uris), level: from?.level });
  }

  /** Removes an agent and tells what it had asked for. */
  detach(
    agent: Agent,
  ): { readonly uris: ReadonlySet<string>; readonly level: string | undefined } | undefined {
    const listener = this.#listeners.get(agent.id);
    this.#listeners.delete(agent.id);
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

  /** Notes a subscription; false if it was there. */
  subscribe(agent: Agent, uri: string): boolean {
    const uris = this.#listeners.get(agent.id)?.uris;
    if (!uris || uris.has(uri)) return false;
    uris.add(uri);
    return true;
  }

  unsubscribe(agent: Agent, uri: string): boolean {
    return this.#listeners.get(agent.id)?.uris.delete(uri) ?? false;
  }

  hasSubscriber(uri: string): boolean {
    for (const { uris } of this.#listeners.values()) if (uris.has(uri)) return true;
    return false;
  }

  /** Every uri that at least one agent watches. */
  watched(): Set<string> {
    const all = new Set<string>();
    for (const { uris } of this.#listeners.values()) for (const uri of uris) all.add(uri);
    return all;
  }

  /** Who is to hear of an update: a server may name a part of what was subscribed to. */
  subscribers(updated: string): Agent[] {
    const told: Agent[] = [];
    for (const { agent, uris } of this.#listeners.values())
      for (const uri of uris)
        if (updated === uri || isPartOf(updated, uri)) {
          told.push(agent);
          break;
        }
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

function isPartOf(uri: string, whole: string): boolean {
  return uri.startsWith(whole) && (whole.endsWith('/') || '/#?'.includes(uri[whole.length] ?? ' '));
}
