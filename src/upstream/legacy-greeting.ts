import type { AgentProfile } from '../pipeline/exchange.js';
import { notification } from '../protocol/compose.js';
import type { Greeting } from './greeting.js';
import { type Implementation, initializeParams, readInitializeResult } from './handshake.js';

export interface LegacyGreetingOptions {
  readonly serverId: string;
  /** What was sent to the server and must not be shown. */
  readonly secrets: readonly string[];
  readonly profile: AgentProfile;
  readonly us: Implementation;
  /** True where the connection is one agent's own. */
  readonly alone: boolean;
}

/**
 * `initialize` and what follows it.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#initialization
 */
export function legacyGreeting({ serverId, secrets, profile, us, alone }: LegacyGreetingOptions): Greeting {
  return {
    method: 'initialize',
    async greet(link, ask) {
      const answer = await ask('initialize', initializeParams(profile, us, alone));
      const facts = readInitializeResult(serverId, answer, secrets);
      await link.send(notification('notifications/initialized'));
      link.established(facts.revision);
      return facts;
    },
  };
}
