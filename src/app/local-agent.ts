import { GatewayError } from '../base/errors.js';
import { unguessableId } from '../base/random.js';
import type { Agent, AgentProfile, Caller, Exchange } from '../pipeline/exchange.js';
import { LATEST_LEGACY_REVISION } from '../protocol/revisions.js';
import type { Message } from '../wire/message.js';

const PROFILE: AgentProfile = {
  revision: LATEST_LEGACY_REVISION,
  capabilities: '{}',
  fingerprint: '{}',
  clientInfo: '',
};

/** A library's user as an agent: it declares no capability, so no server asks it anything. */
export class LocalAgent implements Agent {
  readonly id = `local:${unguessableId()}`;
  readonly profile = PROFILE;
  readonly listening = false;
  /** Requests under way. */
  running = 0;

  /** News of a server reach the library's user by the change bus. */
  notify(): void {}

  ask(): Promise<Message> {
    return Promise.reject(new GatewayError('agent_unreachable', 'This agent answers no requests'));
  }
}

/**
 * One agent for each token: a server's sessions, and what was subscribed to in them, belong to whoever the token stands
 * for. Of more than `max` the one that was used longest ago is let go.
 */
export class LocalAgents {
  readonly #agents = new Map<string, LocalAgent>();
  readonly #max: number;
  readonly #leave: (agent: Agent) => void;

  constructor(max: number, leave: (agent: Agent) => void) {
    this.#max = max;
    this.#leave = leave;
  }

  /** Runs work in the name of a caller's agent, which stays at least that long. */
  async run<T>(caller: Caller, work: (agent: LocalAgent) => Promise<T>): Promise<T> {
    const key = caller.tokenHash ?? '';
    const agent = this.#agents.get(key) ?? new LocalAgent();
    agent.running++;
    this.#agents.delete(key);
    this.#agents.set(key, agent);
    if (this.#agents.size > this.#max) this.#letGo();
    try {
      return await work(agent);
    } finally {
      agent.running--;
    }
  }

  #letGo(): void {
    for (const [key, agent] of this.#agents) {
      if (this.#agents.size <= this.#max) return;
      if (agent.running > 0) continue;
      this.#agents.delete(key);
      this.#leave(agent);
    }
  }
}

/** One request of the library's user. */
export function localExchange(
  agent: LocalAgent,
  request: Pick<Exchange, 'era' | 'serverId' | 'message' | 'caller' | 'signal' | 'fresh' | 'notify'>,
): Exchange {
  return { ...request, agent, ask: () => agent.ask() };
}
