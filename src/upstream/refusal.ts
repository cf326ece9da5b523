import { INVALID_PARAMS, METHOD_NOT_FOUND } from '../protocol/codes.js';
import { valueAt } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';

/** What a status outside 200–299 means. */
export type Refusal =
  | { readonly kind: 'session_lost' }
  | { readonly kind: 'unauthorized' }
  /** The body is the server's own JSON-RPC error; its id is whatever the server wrote. */
  | { readonly kind: 'answer'; readonly message: Message }
  | { readonly kind: 'unavailable' };

/**
 * Reads a refusal; the status decides first, the body only where servers are known to differ. `hadSession`: the request
 * carried a session id.
 *
 * The specification has 404 for a session that is gone, and many servers answer 400 instead. Their texts have nothing
 * in common but that they speak of the session.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management
 */
export function classifyRefusal(status: number, hadSession: boolean, body: Buffer): Refusal {
  if (status === 401 || status === 403) return { kind: 'unauthorized' };
  if (status === 404 && hadSession) return { kind: 'session_lost' };
  const message = jsonRpcError(body);
  if ((status === 400 || status === 410) && hadSession && speaksOfLostSession(message, body))
    return { kind: 'session_lost' };
  return message ? { kind: 'answer', message } : { kind: 'unavailable' };
}

/** Whether a body says that the session is unknown. */
export function speaksOfLostSession(message: Message | undefined, body: Buffer): boolean {
  if (!message) return isSessionWording(body.toString('utf8', 0, 2048));
  const error =
    message.body && (valueAt(message.bytes, message.body) as { code?: unknown; message?: unknown });
  // These two speak of the request's own content, which may well be about some session of the application's.
  if (error?.code === INVALID_PARAMS || error?.code === METHOD_NOT_FOUND) return false;
  return typeof error?.message === 'string' && isSessionWording(error.message.slice(0, 2048));
}

function isSessionWording(text: string): boolean {
  if (/\bserver (is )?not initialized\b/i.test(text)) return true;
  return (
    /session/i.test(text) &&
    /not found|no valid|not valid|invalid|unknown|expired|terminated|closed|no longer|(does not|doesn't) exist|(could not|couldn't|cannot) find|missing|not initialized|no such|no active|gone|lost/i.test(
      text,
    )
  );
}

/** The body as a JSON-RPC error, or undefined. */
export function jsonRpcError(body: Buffer): Message | undefined {
  try {
    const message = readMessage(body);
    return message.kind === 'error' ? message : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Milliseconds of a Retry-After header, given in seconds or as a date; undefined where it is absent or neither.
 * https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
 */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const at = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/** A short piece of a body that can be shown: one line, without markup, control characters or the given secrets. */
export function snippetOf(body: Buffer, secrets: readonly string[]): string {
  let text = body.toString('utf8');
  for (const secret of secrets) text = text.replaceAll(secret, '…');
  text = text
    .slice(0, 4096)
    .replace(/\b(bearer|basic)\s+[\w.~+/=-]+/gi, '$1 …')
    .replace(/<(script|style)\b[^<]*<\/\1>/gi, ' ')
    .replace(/<[^<>]*>/g, ' ')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must go
    .replace(/[\u0000-\u001f\u007f-\u009f\s]+/g, ' ')
    .trim();
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
}
