import type { Era } from '../protocol/revisions.js';
import type { Message } from '../wire/message.js';

/** On whose behalf a request comes. */
export interface Caller {
  /** Authenticated name; `anonymous` is one too. */
  readonly principal: string;
  /** Bearer token that goes to the server in the caller's name. Never logged, never a key. */
  readonly token: string | undefined;
  /** Hex SHA-256 of the token: what keys and partitions are made of. */
  readonly tokenHash: string | undefined;
}

export const ANONYMOUS: Caller = { principal: 'anonymous', token: undefined, tokenHash: undefined };

/** What an agent said of itself when it arrived. */
export interface AgentProfile {
  readonly revision: string;
  /** JSON text of its `capabilities`, as it was sent. */
  readonly capabilities: string;
  /** The same whatever the spelling and the order of keys: agents that differ here never share a connection. */
  readonly fingerprint: string;
  /** JSON text of its `clientInfo`, as it was sent; empty where there was none. */
  readonly clientInfo: string;
}

export interface AskOptions {
  /** Aborted when the server withdraws its request; the reason is its `notifications/cancelled` Message, if any. */
  readonly signal: AbortSignal;
  /** Progress that the agent reports on this request, with the server's own token. */
  readonly onNotification: (message: Message) => void;
}

/** A way to an agent: the stream of one request, or its general one. */
export interface Channel {
  /** Sends a notification, its bytes unchanged. Nobody there: it is dropped. */
  notify(message: Message): void;
  /**
   * Asks the agent and answers with its response, whose id is the channel's own.
   * Rejects with GatewayError `agent_unreachable` or `cancelled`.
   */
  ask(message: Message, options: AskOptions): Promise<Message>;
}

/** An agent as the servers' side sees it: one session, one stdio pipe, or one library user. */
export interface Agent extends Channel {
  /** Unique in the process, unguessable where it is a session id. */
  readonly id: string;
  readonly profile: AgentProfile;
  /** True while unsolicited messages reach it at once; its server's connection is then kept up. */
  readonly listening: boolean;
}

/** One request on its way, and the channel that belongs to it. */
export interface Exchange extends Channel {
  readonly serverId: string;
  readonly message: Message;
  readonly era: Era;
  readonly agent: Agent;
  readonly caller: Caller;
  /** Aborted when nobody waits any more; the reason is the agent's `notifications/cancelled` Message, if any. */
  readonly signal: AbortSignal;
  /** True to ask the server itself and renew what is cached. */
  readonly fresh: boolean;
}

/** Answers an exchange with exactly one response, in the server's own bytes. Rejects with GatewayError. */
export type Handler = (exchange: Exchange) => Promise<Message>;

/** Does its part of the work and calls `next` for the rest. */
export type Layer = (exchange: Exchange, next: Handler) => Promise<Message>;

/** The layers in their order, outermost first, around `last`. */
export function stack(layers: readonly Layer[], last: Handler): Handler {
  return layers.reduceRight<Handler>((next, layer) => (exchange) => layer(exchange, next), last);
}
