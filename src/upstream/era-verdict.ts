import { GatewayError } from '../base/errors.js';
import {
  HEADER_MISMATCH,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_PROTOCOL_VERSION,
} from '../protocol/codes.js';
import { isLegacyRevision, isModernRevision } from '../protocol/revisions.js';
import { valueAt } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import type { Link } from './link.js';

/** What the answer to `server/discover` tells of a server. `why` completes a sentence about it. */
export type EraVerdict =
  | { readonly kind: 'modern' }
  /** It refused the revision, and names it among those that it speaks: once more it may be taken. */
  | { readonly kind: 'again' }
  | { readonly kind: 'legacy'; readonly why: string }
  /** Of the modern era, but it speaks no revision of ours, or refuses us. */
  | { readonly kind: 'unusable'; readonly why: string }
  /** Nothing: the failure itself is all there is to say. */
  | { readonly kind: 'unknown' };

/** Statuses of the 400s that speak of the caller or of the moment, never of the protocol. */
const NOT_ABOUT_PROTOCOL = new Set([401, 403, 407, 408, 421, 425, 429]);

/**
 * The verdict on a server by what came of `server/discover`: a response, or what was thrown. Only evidence counts: a
 * server that is down, slow, or wants another credential may be of either era.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#backward-compatibility-with-initialization-based-versions
 */
export function verdictOf(outcome: unknown, kind: Link['kind']): EraVerdict {
  if (outcome instanceof GatewayError) return verdictOfFailure(outcome, kind);
  if (!isMessage(outcome)) return { kind: 'unknown' };
  const body: unknown = outcome.body && parsed(outcome);
  return outcome.kind === 'error' ? verdictOfError(body) : verdictOfResult(body);
}

/** True for an error that only a server of the modern era answers. */
export function isModernCode(code: unknown): boolean {
  return (
    code === HEADER_MISMATCH || code === MISSING_CLIENT_CAPABILITY || code === UNSUPPORTED_PROTOCOL_VERSION
  );
}

function verdictOfFailure({ code, details: { status } }: GatewayError, kind: Link['kind']): EraVerdict {
  if (kind !== 'http') {
    // A child that does not answer what it does not know, or does not survive it.
    const gone = code === 'server_timeout' || code === 'outcome_unknown' || code === 'session_lost';
    return gone ? { kind: 'legacy', why: 'it does not answer server/discover' } : { kind: 'unknown' };
  }
  const refused = status !== undefined && status >= 400 && status < 500 && !NOT_ABOUT_PROTOCOL.has(status);
  if (code === 'server_unavailable' && refused)
    return { kind: 'legacy', why: `it answered server/discover with status ${status}` };
  return { kind: 'unknown' };
}

function verdictOfError(error: unknown): EraVerdict {
  const { code, message, data } = (error ?? {}) as Record<string, unknown>;
  if (!isModernCode(code)) return { kind: 'legacy', why: `it answered server/discover with error ${code}` };
  if (code !== UNSUPPORTED_PROTOCOL_VERSION)
    return { kind: 'unusable', why: `refuses server/discover with error ${code}: ${message}` };
  const supported = (data as { supported?: unknown } | undefined)?.supported;
  if (Array.isArray(supported) && supported.some(isModernRevision)) return { kind: 'again' };
  return verdictOfVersions(supported);
}

function verdictOfResult(result: unknown): EraVerdict {
  const versions = (result as { supportedVersions?: unknown } | null)?.supportedVersions;
  if (!Array.isArray(versions)) return { kind: 'legacy', why: 'its answer to server/discover is none' };
  return versions.some(isModernRevision) ? { kind: 'modern' } : verdictOfVersions(versions);
}

/** Of a server that knows the modern era and does not name a revision of it that we speak. */
function verdictOfVersions(versions: unknown): EraVerdict {
  const named = Array.isArray(versions) ? versions.filter((version) => typeof version === 'string') : [];
  if (named.some(isLegacyRevision)) return { kind: 'legacy', why: `it speaks ${named.join(', ')}` };
  const which = named.length > 0 ? named.slice(0, 10).join(', ').slice(0, 200) : 'none that it names';
  return { kind: 'unusable', why: `speaks revisions that the gateway does not: ${which}` };
}

function isMessage(outcome: unknown): outcome is Message {
  return typeof outcome === 'object' && outcome !== null && 'bytes' in outcome && 'kind' in outcome;
}

function parsed({ bytes, body }: Message): unknown {
  return body && valueAt(bytes, body);
}
