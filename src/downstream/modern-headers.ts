import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '../base/errors.js';
import { nameSource } from '../protocol/methods.js';
import { type HeaderPlan, headerMismatch } from '../protocol/tool-headers.js';
import { member, stringAt } from '../wire/json.js';
import { decodeHeaderValue } from '../wire/mcp-headers.js';
import type { Message } from '../wire/message.js';

/**
 * Checks the headers that mirror a request's body, whose revision header was compared already. Throws GatewayError
 * `header_mismatch`.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#server-validation
 */
export function checkStandardHeaders(message: Message, headers: IncomingHttpHeaders): void {
  if (headers['mcp-protocol-version'] === undefined)
    throw mismatch('The header MCP-Protocol-Version is missing');
  const method = headers['mcp-method'];
  if (method === undefined) throw mismatch('The header Mcp-Method is missing');
  if (method !== message.method) throw mismatch("The header Mcp-Method differs from the body's `method`");
  const source = nameSource(message.method);
  if (source) checkName(message, source, headers['mcp-name']);
}

function checkName({ bytes, params }: Message, source: string, header: string | string[] | undefined): void {
  if (header === undefined) throw mismatch('The header Mcp-Name is missing');
  const name = decodeHeaderValue(String(header));
  if (name === undefined) throw mismatch('The header Mcp-Name cannot be decoded');
  const span = params && member(bytes, params.start, source);
  const stated = span && bytes[span.start] === 0x22 ? stringAt(bytes, span.start, span.end) : undefined;
  if (name !== stated) throw mismatch(`The header Mcp-Name differs from \`params.${source}\``);
}

/** Checks the headers that mirror a call's arguments. Throws GatewayError `header_mismatch`. */
export function checkToolHeaders(
  plan: HeaderPlan,
  { bytes, params }: Message,
  headers: IncomingHttpHeaders,
): void {
  const header = (name: string) => {
    const value = headers[name];
    return value === undefined ? undefined : String(value);
  };
  const wrong = headerMismatch(plan, bytes, params, header);
  if (wrong !== undefined) throw mismatch(wrong);
}

function mismatch(why: string): GatewayError {
  return new GatewayError('header_mismatch', why);
}
