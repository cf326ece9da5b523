import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import { unguessableId } from '../base/random.js';
import type { Agent, AgentProfile, AskOptions, Exchange } from '../pipeline/exchange.js';
import { LATEST_LEGACY_REVISION } from '../protocol/revisions.js';
import type { Message } from '../wire/message.js';
import type { BridgedCall } from './bridged-call.js';

/**
 * A modern caller as a legacy server's side sees it. It is no stream that could be written to: what is meant for it goes
 * to one of its calls.
 */
export class PseudoAgent implements Agent {
  readonly id = `bridged:${unguessableId()}`;
  readonly profile: AgentProfile;
  readonly listening = false;
  /** Requests under way and calls that wait, oldest first. */
  readonly calls = new Set<BridgedCall>();
  /** Requests under way that can wait for nothing. */
  running = 0;
  usedAt: number;
  /** The most verbose log level that the server was told in its name. */
  level: string | undefined;

  constructor(profile: AgentProfile, now: number) {
    this.profile = { ...profile, revision: LATEST_LEGACY_REVISION };
    this.usedAt = now;
  }

  get busy(): boolean {
    return this.running > 0 || this.calls.size > 0;
  }

  notify(message: Message): void {
    this.#newest()?.notify(message);
  }

  /** Nothing tells which call is meant: the newest that somebody waits for brings the question. */
  ask(message: Message, options: AskOptions): Promise<Message> {
    const call = this.#newest();
    if (call) return call.ask(message, options);
    return Promise.reject(new GatewayError('agent_unreachable', 'No request of the agent is under way'));
  }

  #newest(): BridgedCall | undefined {
    const calls = [...this.calls];
    return calls.findLast(({ attended }) => attended) ?? calls.at(-1);
  }
}

export interface PseudoAgentsOptions {
  readonly clock: Clock;
  readonly maxAgents: number;
  /** After this long without a request an agent is forgotten. */
  readonly agentIdleMs: number;
  readonly leave: (agent: Agent) => void;
}

/** One agent for each server, caller and set of capabilities: a server's sessions belong to whoever is behind them. */
export class PseudoAgents {
  readonly #options: PseudoAgentsOptions;
  /** The longest unused first. */
  readonly #agents = new Map<string, PseudoAgent>();

  constructor(options: PseudoAgentsOptions) {
    this.#options = options;
  }

  /** The agent in whose name an exchange goes to its server. */
  of({ serverId, agent, caller }: Exchange): PseudoAgent {
    const { principal, tokenHash } = caller;
    const key = JSON.stringify([serverId, principal, tokenHash ?? '', agent.profile.fingerprint]);
    const now = this.#options.clock.now();
    const found = this.#agents.get(key) ?? new PseudoAgent(agent.profile, now);
    this.#agents.delete(key);
    this.#agents.set(key, found);
    found.usedAt = now;
    this.#forgetSome(now, found);
    return found;
  }

  close(): void {
    this.#agents.clear();
  }

  /** Those that were not used for long, and the longest unused beyond the limit. */
  #forgetSome(now: number, except: PseudoAgent): void {
    const { agentIdleMs, maxAgents, leave } = this.#options;
    for (const [key, agent] of this.#agents) {
      const idle = now - agent.usedAt >= agentIdleMs;
      if (!idle && this.#agents.size <= maxAgents) return;
      if (agent.busy || agent === except) continue;
      this.#agents.delete(key);
      leave(agent);
    }
  }
}
