import type { GatewayError } from '../base/errors.js';
import type { Message } from '../wire/message.js';

/** What a link tells its owner. Calls are synchronous and in the order of arrival. */
export interface LinkEvents {
  /**
   * A message from the server. `origin` is the wire id of the request on whose own stream it came, undefined where
   * the stream is shared by all (stdio, GET, HTTP+SSE).
   */
  message(message: Message, origin: string | undefined): void;
  /** The shared notification stream broke: something may have been missed. It is being reopened, or is gone. */
  streamLost(): void;
  /** The link is gone for good, by no `close()` of ours. Called once; nothing follows. */
  closed(error: GatewayError): void;
}

/**
 * One open link to one server: framing and delivery, no meaning. A Streamable HTTP link is one upstream session; a
 * new session is a new link.
 */
export interface Link {
  readonly kind: 'stdio' | 'http' | 'sse';
  /**
   * Sends one message. For a request over HTTP it settles when the request's own stream has ended; elsewhere when the
   * message is written. Rejects with GatewayError when the message was not delivered, or when its stream ended without
   * the response: `session_lost`, `server_unavailable` and `unauthorized` mean that it did not run, `outcome_unknown`
   * that nobody can tell. An abort of `signal` ends the wait and frees the stream; it tells the server nothing, unless the
   * end of a stream is what it takes as a cancellation. `headers` go along over HTTP; other links have no use for them.
   */
  send(message: Message, signal?: AbortSignal, headers?: Readonly<Record<string, string>>): Promise<void>;
  /** The handshake is done: from here on the negotiated revision is stated, and a shared stream is held if there is one. */
  established(revision: string): void;
  /** Ends the upstream session or child. Never rejects, and is done within its own bounds. */
  close(): Promise<void>;
}
