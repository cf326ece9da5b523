import type { Clock, Timer } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import { unguessableId } from '../base/random.js';
import type { Agent, AgentProfile, AskOptions, Caller, Exchange } from '../pipeline/exchange.js';
import { LATEST_LEGACY_REVISION } from '../protocol/revisions.js';
import type { Message } from '../wire/message.js';
import type { BridgedCall } from './bridged-call.js';
import { HeldLevel } from './held-level.js';
import { isNews } from './leg-notices.js';
import type { Subscription } from './subscription.js';
import { WatchedResources } from './watched-resources.js';

/** How long a question waits for the next call of an agent that only listens. */
const PATIENCE_MS = 5_000;

/**
 * A modern caller as a legacy server's side sees it. It is no stream that could be written to: what is meant for it goes
 * to one of its calls, and news to its subscriptions.
 */
export class PseudoAgent implements Agent {
  readonly id = `bridged:${unguessableId()}`;
  readonly profile: AgentProfile;
  readonly level: HeldLevel;
  /** What all its subscriptions are about. */
  readonly resources = new WatchedResources();
  /** Whether its server makes tasks of calls; undefined: to be looked up. */
  offersTasks: boolean | undefined;
  /** Calls that may take input, under way or waiting, oldest first. */
  readonly #calls = new Set<BridgedCall>();
  readonly #subscriptions = new Set<Subscription>();
  /** Questions that wait for a call. */
  readonly #waiting = new Set<() => void>();
  readonly #clock: Clock;
  #running = 0;
  #usedAt: number;

  constructor(profile: AgentProfile, clock: Clock) {
    this.profile = { ...profile, revision: LATEST_LEGACY_REVISION };
    this.level = new HeldLevel(clock);
    this.#clock = clock;
    this.#usedAt = clock.now();
  }

  get listening(): boolean {
    return this.#subscriptions.size > 0;
  }

  /** A request of it is under way, or a call of it waits. */
  get busy(): boolean {
    return this.#running > 0;
  }

  get usedAt(): number {
    return this.#usedAt;
  }

  /** Does work in its name; `call` is the one that the work is about, if it may take input. */
  async during<T>(work: () => Promise<T>, call?: BridgedCall): Promise<T> {
    this.#running++;
    if (call) this.#calls.add(call);
    if (call) for (const proceed of [...this.#waiting]) proceed();
    try {
      return await work();
    } finally {
      this.#running--;
      if (call) this.#calls.delete(call);
      this.#usedAt = this.#clock.now();
    }
  }

  /** Does the work of a subscription, which hears the news meanwhile. */
  async listen<T>(subscription: Subscription, work: () => Promise<T>): Promise<T> {
    this.#subscriptions.add(subscription);
    try {
      return await this.during(work);
    } finally {
      this.#subscriptions.delete(subscription);
    }
  }

  notify(message: Message): void {
    if (!isNews(message.method)) return this.#newest()?.notify(message);
    for (const subscription of this.#subscriptions) subscription.tell(message);
  }

  /** Nothing tells which call is meant: the newest that somebody waits for brings the question. */
  async ask(message: Message, options: AskOptions): Promise<Message> {
    // An agent that does not listen was waited for already.
    if (this.listening && this.#calls.size === 0) await this.#called(options.signal);
    const call = this.#newest();
    if (call) return await call.ask(message, options);
    throw new GatewayError('agent_unreachable', 'No call of the agent is under way');
  }

  /** Settles when a call comes, when that takes too long, or when nobody asks any more. */
  #called(withdrawn: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const proceed = () => {
        this.#waiting.delete(proceed);
        timer.cancel();
        withdrawn.removeEventListener('abort', proceed);
        resolve();
      };
      const timer = this.#clock.after(PATIENCE_MS, proceed);
      this.#waiting.add(proceed);
      withdrawn.addEventListener('abort', proceed, { once: true });
    });
  }

  #newest(): BridgedCall | undefined {
    const calls = [...this.#calls];
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

/** One text for one caller: nobody else's is the same. */
export function ownerKey({ principal, tokenHash }: Caller): string {
  return JSON.stringify([principal, tokenHash ?? '']);
}

/** One agent for each server, caller and set of capabilities: a server's sessions belong to whoever is behind them. */
export class PseudoAgents {
  readonly #options: PseudoAgentsOptions;
  /** The longest unused first. */
  readonly #agents = new Map<string, PseudoAgent>();
  #sweep: Timer | undefined;

  constructor(options: PseudoAgentsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#agents.size;
  }

  /** The agent in whose name an exchange goes to its server. */
  of({ serverId, agent, caller }: Exchange): PseudoAgent {
    const key = JSON.stringify([serverId, ownerKey(caller), agent.profile.fingerprint]);
    const { clock, maxAgents } = this.#options;
    const found = this.#agents.get(key) ?? new PseudoAgent(agent.profile, clock);
    this.#agents.delete(key);
    if (this.#agents.size >= maxAgents) this.#makeRoom();
    this.#agents.set(key, found);
    this.#sweep ??= this.#scheduled();
    return found;
  }

  close(): void {
    this.#sweep?.cancel();
    this.#sweep = undefined;
    this.#agents.clear();
  }

  /** Those that have something under way stay, were it one too many. */
  #makeRoom(): void {
    for (const [key, agent] of this.#agents) if (!agent.busy) return this.#forget(key, agent);
  }

  #scheduled(): Timer {
    const { clock, agentIdleMs } = this.#options;
    return clock.after(Math.max(1, agentIdleMs / 4), () => {
      const before = clock.now() - agentIdleMs;
      for (const [key, agent] of this.#agents)
        if (!agent.busy && agent.usedAt <= before) this.#forget(key, agent);
      this.#sweep = this.#agents.size > 0 ? this.#scheduled() : undefined;
    });
  }

  #forget(key: string, agent: PseudoAgent): void {
    this.#agents.delete(key);
    this.#options.leave(agent);
  }
}
