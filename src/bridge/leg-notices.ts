import { severity } from '../protocol/log-levels.js';
import { LOG_LEVEL_META } from '../protocol/meta.js';
import { listChangedKind } from '../protocol/methods.js';
import { JsonError, member, splice } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';
import { paramOf, stringIn, textOf } from './members.js';

/** Notifications of legacy servers that are about no request: they have a place in subscriptions, or none any more. */
const UNRELATED: ReadonlySet<string> = new Set([
  'notifications/elicitation/complete',
  'notifications/tasks/status',
  'notifications/cancelled',
]);

/** Whether a notification is news for whoever listens, on whatever stream it comes. */
export function isNews(method: string): boolean {
  return method === 'notifications/resources/updated' || listChangedKind(method) !== undefined;
}

/** JSON text of the progress token that a request gives. Throws JsonError where it is given twice. */
export function progressTokenOf(request: Message): string | undefined {
  const meta = paramOf(request, '_meta');
  const span = meta && member(request.bytes, meta.start, 'progressToken');
  return span && textOf(request, span);
}

/** The log level from which on a request wants to hear its server. Throws JsonError where it is given twice. */
export function logLevelOf(request: Message): string | undefined {
  return stringIn(request, paramOf(request, '_meta', LOG_LEVEL_META));
}

/**
 * What of a legacy server's notification is told on the stream of a modern request, if anything. `token` is JSON text of
 * the progress token that stands in progress now; the agent is told its request's own. Never throws.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#receiving-messages
 */
export function onStreamOf(
  request: Message,
  notification: Message,
  token: string | undefined,
): Message | undefined {
  const { method } = notification;
  if (UNRELATED.has(method) || isNews(method)) return undefined;
  try {
    if (method === 'notifications/message')
      return isLoudEnough(request, notification) ? notification : undefined;
    return method === 'notifications/progress' ? underToken(request, notification, token) : notification;
  } catch (failure) {
    if (failure instanceof JsonError) return undefined;
    throw failure;
  }
}

/** A server that was never told a level, or serves several, says more than a request asked for. */
function isLoudEnough(request: Message, notification: Message): boolean {
  const wanted = logLevelOf(request);
  if (wanted === undefined) return false;
  return severity(stringIn(notification, paramOf(notification, 'level'))) >= severity(wanted);
}

function underToken(request: Message, progress: Message, token: string | undefined): Message | undefined {
  const own = progressTokenOf(request);
  if (own === undefined || own === token) return own === undefined ? undefined : progress;
  // What was edited on its way has lost its ranges.
  const read = readMessage(progress.bytes);
  const span = paramOf(read, 'progressToken');
  return span && readMessage(splice(read.bytes, [{ ...span, text: own }]));
}
