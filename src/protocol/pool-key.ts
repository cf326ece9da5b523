import type { Scope } from './hints.js';

const TOKEN_HASH = /^[0-9a-f]{64}$/;
/** Hex digits of a token's hash that are shown: enough to tell keys apart, too few to stand for a token. */
const SHOWN_DIGITS = 12;
/** No hex digits: no token's pool key is ever the shared place. */
const SHARED = 'public';

/**
 * Name of one pool of connections, and of the private partition that belongs to it: the server id, or the server id
 * and the hex SHA-256 of the caller's token. Whatever else separates callers is appended behind another `#`.
 * Server ids hold no `#`.
 */
export function poolKey(serverId: string, tokenHash?: string): string {
  return tokenHash === undefined ? serverId : `${serverId}#${tokenHash}`;
}

/** A pool key as logs, metrics and people see it: the hash of a token cut to its first 12 digits. */
export function shownPoolKey(key: string): string {
  return key
    .split('#')
    .map((part) => (TOKEN_HASH.test(part) ? part.slice(0, SHOWN_DIGITS) : part))
    .join('#');
}

/**
 * True when `key` is what `id` names: a server id names all of its keys, a pool key also what was appended to it, a
 * shown key the one that it was cut from. Never true for another server whose id begins alike.
 */
export function poolKeyMatches(key: string, id: string): boolean {
  return key === id || key.startsWith(`${id}#`) || shownPoolKey(key) === id;
}

/** The place where a list is kept: one for all callers of a server, or the partition of one pool key. */
export function listCacheKey(key: string, serverId: string, scope: Scope): string {
  return scope === 'public' ? `${serverId}#${SHARED}` : key;
}
