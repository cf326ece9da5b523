import { nameSource } from '../protocol/methods.js';
import { LATEST_MODERN_REVISION } from '../protocol/revisions.js';
import { JsonError } from '../wire/json.js';
import { encodeHeaderValue } from '../wire/mcp-headers.js';
import type { Message } from '../wire/message.js';
import { stringParam } from './rewrite.js';

/**
 * The headers that mirror a message towards a modern server, made from its body.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata
 */
export function standardHeaders(message: Message): Record<string, string> {
  const headers: Record<string, string> = {
    'mcp-protocol-version': LATEST_MODERN_REVISION,
    'mcp-method': encodeHeaderValue(message.method),
  };
  const source = nameSource(message.method);
  const name = source && nameOf(message, source);
  if (name !== undefined) headers['mcp-name'] = encodeHeaderValue(name);
  return headers;
}

/** Undefined for params that name it twice, which the server will refuse. */
function nameOf(message: Message, source: string): string | undefined {
  try {
    return stringParam(message, source);
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}
