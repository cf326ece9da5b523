import { GatewayError } from '../base/errors.js';
import type { Agent, AgentProfile, Exchange } from '../pipeline/exchange.js';
import {
  CLIENT_CAPABILITIES_META,
  CLIENT_INFO_META,
  LOG_LEVEL_META,
  PROTOCOL_VERSION_META,
} from '../protocol/meta.js';
import { LATEST_MODERN_REVISION } from '../protocol/revisions.js';
import { splice } from '../wire/json.js';
import { type MemberChanges, memberEdits } from '../wire/members.js';
import { type Message, readMessage } from '../wire/message.js';
import { isObject, paramOf } from './members.js';

/** Capabilities of legacy agents that mean nothing to a modern server. */
const HIDDEN = ['tasks'];

/** What a legacy agent said once, as a modern server wants to hear it with each request. */
export interface Envelope {
  /** JSON texts by member of `_meta`. */
  readonly meta: Readonly<Record<string, string>>;
}

export function envelopeOf({ capabilities, clientInfo }: AgentProfile, logLevel?: string): Envelope {
  const bytes = Buffer.from(capabilities);
  const declared = bytes[0] === 0x7b ? splice(bytes, memberEdits(bytes, 0, { remove: HIDDEN })) : '{}';
  return {
    meta: {
      [PROTOCOL_VERSION_META]: JSON.stringify(LATEST_MODERN_REVISION),
      ...(clientInfo ? { [CLIENT_INFO_META]: clientInfo } : {}),
      [CLIENT_CAPABILITIES_META]: declared.toString(),
      ...(logLevel === undefined ? {} : { [LOG_LEVEL_META]: JSON.stringify(logLevel) }),
    },
  };
}

/** JSON text of the `_meta` of a request that has no other. */
export function metaText({ meta }: Envelope): string {
  return `{${Object.entries(meta)
    .map(([name, text]) => `${JSON.stringify(name)}:${text}`)
    .join(',')}}`;
}

/** An agent's request in its envelope; every other byte stays. Throws GatewayError `invalid_params`. */
export function enveloped(message: Message, envelope: Envelope, serverId: string): Message {
  const { bytes, params } = message;
  if (!params) return changed(message, 0, { set: { params: `{"_meta":${metaText(envelope)}}` } });
  const meta = isObject(message, params) ? paramOf(message, '_meta') : undefined;
  if (!isObject(message, params) || (meta && !isObject(message, meta))) {
    const what = '`params` and `params._meta` must be objects for a server of 2026-07-28';
    throw new GatewayError('invalid_params', what, { serverId });
  }
  if (!meta) return changed(message, params.start, { set: { _meta: metaText(envelope) } });
  return readMessage(splice(bytes, memberEdits(bytes, meta.start, { set: envelope.meta })));
}

function changed(message: Message, at: number, changes: MemberChanges): Message {
  return readMessage(splice(message.bytes, memberEdits(message.bytes, at, changes)));
}

/** A legacy agent as a modern server's side sees it. */
export class EnvelopedAgent implements Agent {
  readonly id: string;
  readonly profile: AgentProfile;
  readonly listening = false;
  readonly #agent: Agent;

  constructor(agent: Agent) {
    this.#agent = agent;
    this.id = agent.id;
    this.profile = { ...agent.profile, revision: LATEST_MODERN_REVISION };
  }

  notify(message: Message): void {
    this.#agent.notify(message);
  }

  ask(): Promise<Message> {
    return Promise.reject(new GatewayError('agent_unreachable', 'A modern server asks by its answers only'));
  }
}

/** A request to a modern server on behalf of a legacy agent's. */
export function modernExchange(upper: Exchange, agent: Agent, message: Message): Exchange {
  const { serverId, caller, fresh, signal } = upper;
  return {
    ...{ era: 'modern', serverId, message, agent, caller, fresh, signal },
    notify: (notification) => upper.notify(notification),
    ask: () => agent.ask(message, { signal, onNotification: () => {} }),
  };
}
