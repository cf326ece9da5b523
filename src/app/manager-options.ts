import type { GatewayEvent } from '../pipeline/events.js';
import type { ListKind } from '../protocol/methods.js';
import type { TokenSource } from './token-source.js';

export interface RequestOptions {
  /** In whose name the server is asked; lists, connections and sessions are kept apart by it. */
  readonly token?: TokenSource | undefined;
  /** Gives the request up at once, wherever it is; the server is told of one that has reached it. */
  readonly signal?: AbortSignal | undefined;
}

export interface ListOptions extends RequestOptions {
  /** Asks the server itself and renews what is cached. */
  readonly fresh?: boolean | undefined;
}

export interface CallOptions extends RequestOptions {
  /** Given the `params` of each `notifications/progress` until the answer. What it throws ends the call with that. */
  readonly onProgress?: ((params: unknown) => void) | undefined;
}

/** What a manager tells on its own account. It never emits `error`. */
export interface ManagerEvents {
  /**
   * A server said that a list of its has changed, or came back from a loss and may offer another one. What was cached of
   * it is gone already. Heard while a connection to the server stands.
   */
  list_changed: [{ readonly serverId: string; readonly list: ListKind }];
  /** A server said that a resource has changed. */
  resource_updated: [{ readonly serverId: string; readonly uri: string }];
  /** Everything that is noticed; it holds no token and no message body. */
  event: [GatewayEvent];
}
