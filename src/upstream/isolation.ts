import { sha256Hex } from '../base/hash.js';
import { type Agent, ANONYMOUS, type Caller } from '../pipeline/exchange.js';
import { poolKey } from '../protocol/pool-key.js';

/** How far agents share the connections of one server. */
export interface Sharing {
  readonly id: string;
  readonly isolate: 'auto' | 'token' | 'principal' | 'session';
  /** True where the caller's own token goes to this server. */
  readonly takesToken: boolean;
}

/**
 * Where the lists that an agent may be given live: the pool key without what separates connections only. Lists depend on
 * the credential, sessions on whoever used them before.
 */
export function partitionKey(server: Sharing, agent: Agent, caller: Caller): string {
  const key = poolKey(server.id, server.takesToken ? caller.tokenHash : undefined);
  switch (server.isolate) {
    case 'session':
      return key + ofSession(agent);
    case 'principal':
      return key + ofPrincipal(caller);
    case 'auto':
    case 'token':
      return key;
  }
}

/** Which connection an agent's request goes over. Agents that offer a server different things never share one. */
export function connectionKey(server: Sharing, agent: Agent, caller: Caller): string {
  const known = server.isolate === 'auto' && caller.principal !== ANONYMOUS.principal;
  const { fingerprint } = agent.profile;
  const declared = fingerprint === '{}' ? '' : `#declares:${sha256Hex(fingerprint).slice(0, 16)}`;
  return partitionKey(server, agent, caller) + (known ? ofPrincipal(caller) : '') + declared;
}

/**
 * The same on a modern server. What an agent offers travels with each request, and nothing is remembered between two, so
 * that neither separates agents.
 */
export function modernKey(server: Sharing, agent: Agent, caller: Caller): string {
  return `${partitionKey(server, agent, caller)}#modern`;
}

/** Which connection an agent's request goes over where the agent has one to itself. */
export function ownKey(server: Sharing, agent: Agent, caller: Caller): string {
  return connectionKey(server, agent, caller) + ofSession(agent);
}

/** Whether a server may ask this agent anything: it declared a capability. */
export function canBeAsked(agent: Agent): boolean {
  return agent.profile.fingerprint !== '{}';
}

/** The hash, as the id itself is what a session is entered by. */
export function ofSession(agent: Agent): string {
  return `#session:${sha256Hex(agent.id).slice(0, 32)}`;
}

/** Encoded, so that no name holds the separator. */
function ofPrincipal(caller: Caller): string {
  return `#principal:${encodeURIComponent(caller.principal)}`;
}
