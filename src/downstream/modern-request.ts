import { BoundedMap } from '../base/bounded-map.js';
import { GatewayError } from '../base/errors.js';
import type { AgentProfile } from '../pipeline/exchange.js';
import { LOG_LEVELS } from '../protocol/log-levels.js';
import {
  CLIENT_CAPABILITIES_META,
  CLIENT_INFO_META,
  LOG_LEVEL_META,
  PROTOCOL_VERSION_META,
} from '../protocol/meta.js';
import {
  isLegacyRevision,
  isModernRevision,
  LATEST_MODERN_REVISION,
  MODERN_REVISIONS,
} from '../protocol/revisions.js';
import { forEachMember, JsonError, member, type Span, stringAt } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import { fingerprintOf } from './profile.js';

/**
 * What a request of 2026-07-28 says of itself.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic#meta
 */
export interface ModernRequest {
  readonly profile: AgentProfile;
  /** Least severe level of log messages that its agent wants to see; undefined: none at all. */
  readonly logLevel: string | undefined;
}

const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
/** Different declarations that are remembered: agents send theirs with each request. */
const MAX_PROFILES = 256;
const MARK = Buffer.from('io.modelcontextprotocol');
const NOBODY: AgentProfile = {
  revision: LATEST_MODERN_REVISION,
  capabilities: '{}',
  fingerprint: '{}',
  clientInfo: '',
};
const ESCAPE = Buffer.from('\\u00');

/** Whether a message is to be taken as one of the modern era: it declares a revision that is no legacy one. */
export function isModern(message: Message): boolean {
  const { bytes, params } = message;
  if (!params || !(bytes.includes(MARK) || bytes.includes(ESCAPE))) return false;
  try {
    const version = member(bytes, params.start, '_meta', PROTOCOL_VERSION_META);
    if (!version) return false;
    return bytes[version.start] !== QUOTE || !isLegacyRevision(stringAt(bytes, version.start, version.end));
  } catch (error) {
    // Given twice: modern at any rate, and refused as such.
    if (error instanceof JsonError) return true;
    throw error;
  }
}

/** Reads the declarations of modern requests; those of one agent are the same each time. */
export class ModernRequests {
  readonly #profiles = new BoundedMap<string, AgentProfile>(MAX_PROFILES);

  /**
   * `headerRevision` is what the request's MCP-Protocol-Version header says, undefined where there are no headers.
   * Throws GatewayError `invalid_params`, `header_mismatch` or `revision_unsupported`.
   */
  read(message: Message, headerRevision?: string): ModernRequest {
    const { bytes } = message;
    const meta = metaOf(message);
    const revision = textAt(bytes, meta[PROTOCOL_VERSION_META], PROTOCOL_VERSION_META);
    if (headerRevision !== undefined && headerRevision !== revision)
      throw new GatewayError(
        'header_mismatch',
        'The header MCP-Protocol-Version differs from the revision that the body declares',
      );
    if (!isModernRevision(revision)) throw unsupported(revision);
    return {
      profile: this.#profile(bytes, meta, revision),
      logLevel: logLevelOf(bytes, meta[LOG_LEVEL_META]),
    };
  }

  /** Who sends a notification, which need not say so. */
  notifier(message: Message): AgentProfile {
    try {
      return this.read(message).profile;
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      return NOBODY;
    }
  }

  #profile(bytes: Buffer, meta: Meta, revision: string): AgentProfile {
    const capabilities = objectText(bytes, meta[CLIENT_CAPABILITIES_META], CLIENT_CAPABILITIES_META);
    const info = meta[CLIENT_INFO_META];
    const clientInfo = info ? objectText(bytes, info, CLIENT_INFO_META) : '';
    const key = `${revision}${clientInfo.length} ${clientInfo}${capabilities}`;
    const known = this.#profiles.get(key);
    if (known) return known;
    const profile = { revision, capabilities, fingerprint: fingerprintOf(capabilities), clientInfo };
    this.#profiles.set(key, profile);
    return profile;
  }
}

type Meta = Readonly<Record<string, Span | undefined>>;

/** Where the members of `params._meta` lie. */
function metaOf({ bytes, params }: Message): Meta {
  try {
    const at = params && member(bytes, params.start, '_meta');
    if (!at || bytes[at.start] !== OPEN_BRACE)
      throw malformed(`\`params._meta\` must hold ${PROTOCOL_VERSION_META}`);
    const found: Record<string, Span> = Object.create(null) as Record<string, Span>;
    forEachMember(bytes, at.start, (name, start, end) => {
      found[name] = { start, end };
    });
    return found;
  } catch (error) {
    if (error instanceof JsonError) throw malformed(error.message);
    throw error;
  }
}

function textAt(bytes: Buffer, span: Span | undefined, name: string): string {
  if (!span || bytes[span.start] !== QUOTE) throw malformed(`\`_meta\` must hold ${name}, a text`);
  return stringAt(bytes, span.start, span.end);
}

function objectText(bytes: Buffer, span: Span | undefined, name: string): string {
  if (!span || bytes[span.start] !== OPEN_BRACE) throw malformed(`\`_meta\` must hold ${name}, an object`);
  return bytes.toString('utf8', span.start, span.end);
}

function logLevelOf(bytes: Buffer, span: Span | undefined): string | undefined {
  if (!span) return undefined;
  const level = textAt(bytes, span, LOG_LEVEL_META);
  if (!LOG_LEVELS.includes(level))
    throw malformed(`${LOG_LEVEL_META} must be one of ${LOG_LEVELS.join(', ')}`);
  return level;
}

/** Over HTTP a request that is not well formed is refused with a status. */
function malformed(why: string): GatewayError {
  return new GatewayError('invalid_params', why, { status: 400 });
}

function unsupported(requested: string): GatewayError {
  return new GatewayError('revision_unsupported', 'Unsupported protocol version', {
    data: { supported: MODERN_REVISIONS, requested },
  });
}
