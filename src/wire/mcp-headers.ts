import { isUtf8 } from 'node:buffer';

/**
 * How texts travel in `Mcp-Name` and `Mcp-Param-*` headers: as they are where a header can hold them, else in Base64
 * between two markers.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#value-encoding
 */
const OPENING = '=?base64?';
const CLOSING = '?=';

/** What arrives as it was sent: visible ASCII, with spaces and tabs inside only, because those around it are cut off. */
const PLAIN = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
/** What a header may hold at all. */
const HELD = /^[\t\x20-\x7e]*$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The header's value that stands for a text. */
export function encodeHeaderValue(text: string): string {
  if (PLAIN.test(text) && !isMarked(text)) return text;
  return OPENING + Buffer.from(text).toString('base64') + CLOSING;
}

/** The text that a header's value stands for; undefined for one that stands for none. */
export function decodeHeaderValue(value: string): string | undefined {
  if (!isMarked(value)) return HELD.test(value) ? value : undefined;
  // The two markers may not share a character.
  if (value.length < OPENING.length + CLOSING.length) return undefined;
  const coded = value.slice(OPENING.length, -CLOSING.length);
  if (!BASE64.test(coded)) return undefined;
  const bytes = Buffer.from(coded, 'base64');
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}

function isMarked(text: string): boolean {
  return text.startsWith(OPENING) && text.endsWith(CLOSING);
}
