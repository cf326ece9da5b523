import type { Agent, Caller, Exchange, Handler } from '../pipeline/exchange.js';
import type { HeaderPlan } from '../protocol/tool-headers.js';
import type { Message } from '../wire/message.js';

/** What the agents' side needs of the rest of the gateway; the composition root provides it. */
export interface Backend {
  /**
   * Answers every request of an agent, `initialize` too: its answer holds the server's InitializeResult with the
   * revision that the server speaks.
   */
  readonly handle: Handler;
  /**
   * How the arguments of a `tools/call` are mirrored in `Mcp-Param-*` headers; undefined where nothing is known of the
   * tool. May ask the server for its list. Never rejects.
   */
  mirroredParams(exchange: Exchange): Promise<HeaderPlan | undefined>;
  /** Takes a notification of an agent to its server. Never throws; what cannot be delivered becomes an event. */
  notify(serverId: string, agent: Agent, caller: Caller, message: Message): void;
  /** The agent's general stream was opened: its server's connection is kept up while it lasts. */
  listen(serverId: string, agent: Agent, caller: Caller): void;
  /** The agent is gone for good. */
  leave(agent: Agent): void;
  /** Ids that have an endpoint, in configuration order; those of unusable entries too, which answer with their error. */
  serverIds(): readonly string[];
}
