import type { Clock } from '../base/clock.js';
import type { Random } from '../base/random.js';
import type { EventSink } from '../pipeline/events.js';
import type { Agent, Caller, Exchange, Handler } from '../pipeline/exchange.js';
import type { Era } from '../protocol/revisions.js';
import type { Message } from '../wire/message.js';

/** What is known of the eras that servers speak. */
export interface Eras {
  /** The era in which agents of an era are served: their own where the server speaks it. Undefined: not found out. */
  recall(serverId: string, era: Era): Era | undefined;
  /**
   * Finds it out by connecting. Rejects with GatewayError where nothing tells: the server cannot be reached, or refuses
   * the credential.
   */
  find(exchange: Exchange): Promise<Era>;
}

/** The servers' side below the bridge. `handle` takes each request in the era that its exchange states. */
export interface Servers {
  readonly handle: Handler;
  /** Takes a notification of an agent to its server, in the era of the agent's profile. Throws GatewayError. */
  notify(serverId: string, agent: Agent, caller: Caller, message: Message): void;
  /** A legacy agent listens: its server's connection is kept up. Throws GatewayError. */
  listen(serverId: string, agent: Agent, caller: Caller): void;
  leave(agent: Agent): void;
  /** A list of tools was given to a modern agent: how they are mirrored in headers can be learnt from it. */
  listed(exchange: Exchange, answer: Message): void;
}

export interface BridgeDeps {
  readonly eras: Eras;
  readonly servers: Servers;
  /** Name of the place where the lists that an agent may be given are kept. */
  readonly partitionOf: (serverId: string, agent: Agent, caller: Caller) => string;
  readonly clock: Clock;
  readonly random: Random;
  readonly emit: EventSink;
  /** How long a call is held for an agent that was asked for input. */
  readonly parkMs: number;
  readonly maxParkedCalls: number;
  /** Agents without a session that are remembered as one towards legacy servers. */
  readonly maxAgents: number;
  /** After this long without a request such an agent is forgotten. */
  readonly agentIdleMs: number;
}
