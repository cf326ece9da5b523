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

/** The library's user as an agent: it declares no capability, so no server asks it anything. */
export class LocalAgent implements Agent {
  readonly id = `local:${unguessableId()}`;
  readonly profile = PROFILE;
  readonly listening = false;

  /** News of a server reach the library's user by the change bus. */
  notify(): void {}

  ask(): Promise<Message> {
    return Promise.reject(new GatewayError('agent_unreachable', 'This agent answers no requests'));
  }
}

/** One request of the library's user. */
export function localExchange(
  agent: LocalAgent,
  request: { serverId: string; message: Message; caller: Caller; signal: AbortSignal; fresh: boolean },
  onNotification: (message: Message) => void,
): Exchange {
  return { ...request, era: 'legacy', agent, notify: onNotification, ask: () => agent.ask() };
}
