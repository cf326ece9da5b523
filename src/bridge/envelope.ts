import { GatewayError } from '../base/errors.js';
import type { Agent, AgentProfile, Exchange } from '../pipeline/exchange.js';
import { severity } from '../protocol/log-levels.js';
import {
  CLIENT_CAPABILITIES_META,
  CLIENT_INFO_META,
  LOG_LEVEL_META,
  PROTOCOL_VERSION_META,
  TASKS_EXTENSION,
} from '../protocol/meta.js';
import { LATEST_MODERN_REVISION } from '../protocol/revisions.js';
import { JsonError, member, skipSpace, splice } from '../wire/json.js';
import { memberEdits } from '../wire/members.js';
import type { Message } from '../wire/message.js';
import { edited } from './edited.js';
import { changedAt, isObject, paramOf, stringIn } from './members.js';

const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const ESCAPE = Buffer.from('\\u');
const RESERVED_PREFIX = Buffer.from('io.modelcontextprotocol');

/** Capabilities of legacy agents that mean nothing to a modern server. */
const HIDDEN = ['tasks'];
/** Members of `_meta` that are the gateway's to set, whatever an agent of a revision without them sent. */
const RESERVED = [PROTOCOL_VERSION_META, CLIENT_INFO_META, CLIENT_CAPABILITIES_META, LOG_LEVEL_META];

/** What a legacy agent said once, as a modern server wants to hear it with each request. */
export interface Envelope {
  /** JSON texts by member of `_meta`. */
  readonly meta: Readonly<Record<string, string>>;
  /** All of them, as they stand in an object; never empty. */
  readonly members: string;
}

/** Throws JsonError where the agent declared a capability twice that is not brought along. */
export function envelopeOf({ capabilities, clientInfo }: AgentProfile, logLevel?: string): Envelope {
  return envelopeWith({
    [PROTOCOL_VERSION_META]: JSON.stringify(LATEST_MODERN_REVISION),
    ...(clientInfo ? { [CLIENT_INFO_META]: clientInfo } : {}),
    [CLIENT_CAPABILITIES_META]: declared(capabilities),
    ...(logLevel === undefined ? {} : { [LOG_LEVEL_META]: JSON.stringify(logLevel) }),
  });
}

function envelopeWith(meta: Envelope['meta']): Envelope {
  const members = Object.entries(meta).map(([name, text]) => `${JSON.stringify(name)}:${text}`);
  return { meta, members: members.join(',') };
}

/** The same, where the gateway itself follows the tasks that become of calls. */
export function withTasks(envelope: Envelope): Envelope {
  const bytes = Buffer.from(envelope.meta[CLIENT_CAPABILITIES_META] as string);
  const extensions = member(bytes, 0, 'extensions');
  const edits =
    extensions && bytes[extensions.start] === OPEN_BRACE
      ? memberEdits(bytes, extensions.start, { set: { [TASKS_EXTENSION]: '{}' } })
      : memberEdits(bytes, 0, { set: { extensions: JSON.stringify({ [TASKS_EXTENSION]: {} }) } });
  return envelopeWith({ ...envelope.meta, [CLIENT_CAPABILITIES_META]: splice(bytes, edits).toString() });
}

/** Tasks of either kind are left out: those of 2025-11-25 are other ones, and an agent of it cannot follow the newer. */
function declared(capabilities: string): string {
  const bytes = Buffer.from(capabilities);
  if (bytes[0] !== OPEN_BRACE) return '{}';
  const extensions = member(bytes, 0, 'extensions');
  const edits =
    extensions && bytes[extensions.start] === OPEN_BRACE
      ? memberEdits(bytes, extensions.start, { remove: [TASKS_EXTENSION] })
      : [];
  return splice(bytes, [...memberEdits(bytes, 0, { remove: HIDDEN }), ...edits]).toString();
}

/** JSON text of the `_meta` of a request that has no other. */
export function metaText({ members }: Envelope): string {
  return `{${members}}`;
}

/**
 * An agent's request in its envelope; every other byte stays. Throws GatewayError `invalid_params`, JsonError where a
 * member that is to be set is given twice.
 */
export function enveloped(message: Message, envelope: Envelope, serverId: string): Message {
  const { bytes, params } = message;
  if (!params) return changedAt(message, 0, { set: { params: `{"_meta":${metaText(envelope)}}` } });
  const meta = isObject(message, params) ? paramOf(message, '_meta') : undefined;
  if (!isObject(message, params) || (meta && !isObject(message, meta))) {
    const what = '`params` and `params._meta` must be objects for a server of 2026-07-28';
    throw new GatewayError('invalid_params', what, { serverId });
  }
  if (!meta) return withMembers(message, params.start, `"_meta":${metaText(envelope)}`);
  if (!mentionsReserved(bytes)) return withMembers(message, meta.start, envelope.members);
  return edited(message, memberEdits(bytes, meta.start, { set: envelope.meta, remove: RESERVED }));
}

/** Whether a text may hold a reserved name; it can be spelled with escapes. */
function mentionsReserved(bytes: Buffer): boolean {
  return bytes.includes(RESERVED_PREFIX) || bytes.includes(ESCAPE);
}

/** The message with more members in the object at `at`, before the others. */
function withMembers(message: Message, at: number, members: string): Message {
  const isEmpty = message.bytes[skipSpace(message.bytes, at + 1)] === CLOSE_BRACE;
  return edited(message, [{ start: at + 1, end: at + 1, text: isEmpty ? members : `${members},` }]);
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

/**
 * A request to a modern server on behalf of a legacy agent's, whose log messages it hears from `logLevel` on: a server
 * may send more than was asked for.
 */
export function modernExchange(upper: Exchange, agent: Agent, message: Message, logLevel?: string): Exchange {
  const { serverId, caller, fresh, signal } = upper;
  return {
    ...{ era: 'modern', serverId, message, agent, caller, fresh, signal },
    notify: (notification) => {
      if (isLoud(notification, logLevel)) upper.notify(notification);
    },
    ask: () => agent.ask(message, { signal, onNotification: () => {} }),
  };
}

function isLoud(notification: Message, logLevel: string | undefined): boolean {
  if (logLevel === undefined || notification.method !== 'notifications/message') return true;
  try {
    return severity(stringIn(notification, paramOf(notification, 'level'))) >= severity(logLevel);
  } catch (failure) {
    if (failure instanceof JsonError) return false;
    throw failure;
  }
}
