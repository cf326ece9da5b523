import type { GatewayErrorCode } from '../base/errors.js';
import { concealed } from '../base/secrets.js';
import type { Era } from '../protocol/revisions.js';
import type { ChangeReason } from './changes.js';

/**
 * Everything the gateway notices, as one closed union; logs and metrics are made of it. No member ever holds a token,
 * a header value or a message body. `pool` is a pool key as it may be shown.
 */
export type GatewayEvent =
  | {
      readonly type: 'server_connected';
      readonly serverId: string;
      readonly pool: string;
      readonly durationMs: number;
    }
  | {
      readonly type: 'server_connect_failed';
      readonly serverId: string;
      readonly pool: string;
      readonly code: GatewayErrorCode;
      readonly message: string;
      readonly retryInMs: number;
    }
  | {
      readonly type: 'server_disconnected';
      readonly serverId: string;
      readonly pool: string;
      readonly reason: 'idle' | 'evicted' | 'closed' | 'lost';
      readonly message: string;
    }
  /** One line, or a cut piece of one, that a child wrote to stderr. */
  | { readonly type: 'server_stderr'; readonly serverId: string; readonly line: string }
  /** Text on a child's stdout that is no message. `total` counts since the child started. */
  | {
      readonly type: 'server_noise';
      readonly serverId: string;
      readonly sample: string;
      readonly total: number;
    }
  /** A message that belongs to no agent, or to one that cannot take it. */
  | {
      readonly type: 'message_dropped';
      readonly serverId: string;
      readonly method: string;
      readonly why: string;
    }
  | {
      readonly type: 'cache_outcome';
      readonly serverId: string;
      readonly method: string;
      readonly outcome: 'hit' | 'miss' | 'collapsed' | 'fresh';
    }
  | {
      readonly type: 'cache_purged';
      readonly serverId: string;
      readonly reason: ChangeReason;
      readonly entries: number;
    }
  | {
      readonly type: 'session_opened' | 'session_closed';
      readonly serverId: string;
      readonly sessions: number;
    }
  /** What was found out of the protocol that a server speaks. */
  | {
      readonly type: 'era_found';
      readonly serverId: string;
      readonly era: Era;
      readonly speaks: boolean;
      readonly why: string;
    }
  /** A call waits for its agent to bring what the server asked. `parked`: how many do now. */
  | {
      readonly type: 'call_parked' | 'call_resumed' | 'call_expired';
      readonly serverId: string;
      readonly parked: number;
    }
  /** A tool's definition cannot be used over HTTP and was left out of the list. */
  | {
      readonly type: 'tool_excluded';
      readonly serverId: string;
      readonly tool: string;
      readonly why: string;
    }
  | { readonly type: 'warning'; readonly serverId?: string; readonly message: string };

/** Takes an event. Must not throw and must not wait: a failing sink costs nobody an answer. */
export type EventSink = (event: GatewayEvent) => void;

/** Members of events that may hold what a server wrote. */
const FREE_TEXT: ReadonlySet<string> = new Set(['message', 'method', 'why', 'line', 'sample', 'tool']);

/** A sink for what is noticed of a server: secrets that were sent to it, and that it may send back, stand in no event. */
export function withoutSecrets(emit: EventSink, secrets: readonly string[]): EventSink {
  if (secrets.length === 0) return emit;
  const clean = ([name, value]: [string, unknown]) =>
    FREE_TEXT.has(name) && typeof value === 'string' ? [name, concealed(value, secrets)] : [name, value];
  return (event) => emit(Object.fromEntries(Object.entries(event).map(clean)) as GatewayEvent);
}
