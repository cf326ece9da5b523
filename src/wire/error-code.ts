import { JsonError, member, valueAt } from './json.js';
import type { Message } from './message.js';

/** Code of a JSON-RPC error response; undefined for any other message and for a code that is no number. */
export function errorCodeOf({ kind, bytes, body }: Message): number | undefined {
  if (kind !== 'error' || !body) return undefined;
  try {
    const span = member(bytes, body.start, 'code');
    const code = span && span.end - span.start <= 16 ? valueAt(bytes, span) : undefined;
    return typeof code === 'number' ? code : undefined;
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}
