import type { Agent, Exchange } from '../pipeline/exchange.js';
import type { Audience } from './audience.js';
import type { Connection } from './connection.js';
import type { Sign } from './owners.js';
import type { Pending } from './pending.js';

/**
 * The way to the agent that a message on a shared channel belongs to, or undefined where nothing tells. Its sign decides;
 * without one, it is the only agent attached, or else, on a channel that answers come on too, the only one for which the
 * server has work. Nothing is guessed: an unknown sign may well be that of an agent that is not attached any more.
 */
export function channelOf(
  connection: Connection,
  audience: Audience,
  sign: Sign | undefined,
): Exchange | Agent | undefined {
  if (sign?.agentId !== undefined) return reachable(connection, audience.get(sign.agentId));
  const only = audience.only();
  if (connection.kind === 'http') return reachable(connection, only);
  const [busy, another] = connection.concerned();
  if (another === undefined && (busy === undefined || busy === only?.id)) return onItsOwn(connection, only);
  if (sign || busy === undefined || another !== undefined) return undefined;
  const agent = audience.get(busy);
  return agent && requestsOf(connection, agent).length > 0 ? onItsOwn(connection, agent) : undefined;
}

/** The agent's general stream, or the stream of its newest request where it holds no general one. */
export function reachable(connection: Connection, agent: Agent | undefined): Exchange | Agent | undefined {
  if (!agent || agent.listening) return agent;
  return requestsOf(connection, agent).at(-1)?.exchange ?? agent;
}

/** The stream of an agent's only request under way; of several nobody knows which is meant. */
function onItsOwn(connection: Connection, agent: Agent | undefined): Exchange | Agent | undefined {
  const [only, another] = agent ? requestsOf(connection, agent) : [];
  return only && !another ? only.exchange : reachable(connection, agent);
}

/** Requests of an agent under way, oldest first. */
export function requestsOf(
  connection: Connection,
  agent: Agent,
): (Pending & { readonly exchange: Exchange })[] {
  return [...connection.exchanges()].filter(({ exchange }) => exchange.agent.id === agent.id);
}
