import { GatewayError } from '../base/errors.js';
import type { AgentProfile } from '../pipeline/exchange.js';
import { LATEST_LEGACY_REVISION, negotiateLegacy } from '../protocol/revisions.js';
import { JsonError, member, splice, valueAt } from '../wire/json.js';
import { idEdit, type Message, withId } from '../wire/message.js';

/** Nesting that `capabilities` may have; more is no declaration but an attack. */
const MAX_DEPTH = 64;

/** What an agent says of itself in `initialize`. Throws GatewayError `invalid_request`. */
export function profileOf(initialize: Message): AgentProfile {
  const { bytes, params } = initialize;
  const at = params?.start ?? -1;
  const text = (name: string): string => {
    const span = at < 0 ? undefined : memberOnce(bytes, at, name);
    return span ? bytes.toString('utf8', span.start, span.end) : '';
  };
  const asked = text('protocolVersion');
  const capabilities = text('capabilities') || '{}';
  return {
    revision: asked.startsWith('"') ? (JSON.parse(asked) as string) : LATEST_LEGACY_REVISION,
    capabilities,
    fingerprint: fingerprintOf(capabilities),
    clientInfo: text('clientInfo'),
  };
}

function memberOnce(bytes: Buffer, at: number, name: string) {
  try {
    return member(bytes, at, name);
  } catch (error) {
    if (error instanceof JsonError) throw new GatewayError('invalid_request', error.message);
    throw error;
  }
}

/** One text for every spelling and order of the same declaration, which is JSON text. Throws GatewayError `invalid_request`. */
export function fingerprintOf(capabilities: string): string {
  return canonical(JSON.parse(capabilities), 0);
}

function canonical(value: unknown, depth: number): string {
  if (depth > MAX_DEPTH) throw new GatewayError('invalid_request', '`capabilities` is nested too deep');
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item, depth + 1)).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, item]) => `${JSON.stringify(name)}:${canonical(item, depth + 1)}`).join()}}`;
}

/** The server's answer to `initialize` as one agent gets it. */
export interface Welcome {
  readonly bytes: Buffer;
  /** Undefined where the server refused. */
  readonly revision: string | undefined;
}

/**
 * Gives a server's InitializeResult the agent's id and the revision that both sides can speak; every other byte stays.
 * Throws GatewayError `server_protocol` where the result states no revision.
 */
export function welcome(response: Message, id: string, asked: string, serverId: string): Welcome {
  if (response.kind === 'error') return { bytes: withId(response, id), revision: undefined };
  const { bytes, body } = response;
  const span = body && memberOnce(bytes, body.start, 'protocolVersion');
  if (!span) {
    const message = `Server ${serverId} answered initialize without protocolVersion`;
    throw new GatewayError('server_protocol', message, { serverId });
  }
  const revision = negotiateLegacy(asked, String(valueAt(bytes, span)));
  const edits = [idEdit(response, id), { ...span, text: JSON.stringify(revision) }];
  return { bytes: splice(bytes, edits), revision };
}
