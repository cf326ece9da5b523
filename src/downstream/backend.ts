import type { Agent, Caller, Handler } from '../pipeline/exchange.js';
import type { Message } from '../wire/message.js';

/** What the agents' side needs of the rest of the gateway; the composition root provides it. */
export interface Backend {
  /**
   * Answers every request of an agent, `initialize` too: its answer holds the server's InitializeResult with the
   * revision that the server speaks.
   */
  readonly handle: Handler;
  /** Takes a notification of an agent to its server. Never throws; what cannot be delivered becomes an event. */
  notify(serverId: string, agent: Agent, caller: Caller, message: Message): void;
  /** The agent's general stream was opened: its server's connection is kept up while it lasts. */
  listen(serverId: string, agent: Agent, caller: Caller): void;
  /** The agent is gone for good. */
  leave(agent: Agent): void;
  /** Ids that have an endpoint, in configuration order; those of unusable entries too, which answer with their error. */
  serverIds(): readonly string[];
}
