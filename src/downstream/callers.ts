import type { IncomingMessage } from 'node:http';
import { sha256Hex } from '../base/hash.js';
import { ANONYMOUS, type Caller } from '../pipeline/exchange.js';

/**
 * Who sends a request. `last` is the caller of the session's request before, which most often is the same. Throws
 * GatewayError `unauthorized`.
 */
export type Authenticate = (request: IncomingMessage, last: Caller | undefined) => Caller;

const BEARER = /^bearer +(\S+) *$/i;

/** Takes every caller as anonymous, with the bearer token that it brings for its server. */
export function bearerCaller(request: IncomingMessage, last: Caller | undefined): Caller {
  const header = request.headers.authorization;
  if (header === undefined) return ANONYMOUS;
  const token = BEARER.exec(header)?.[1];
  if (token === undefined) return ANONYMOUS;
  if (last?.token === token) return last;
  return { principal: ANONYMOUS.principal, token, tokenHash: sha256Hex(token) };
}
