import type { Message } from '../wire/message.js';
import type { ServerFacts } from './handshake.js';
import type { Link } from './link.js';

/** How a connection begins: what makes a link one on which agents' requests can be sent. */
export interface Greeting {
  /** The first request. */
  readonly method: 'initialize' | 'server/discover';
  /**
   * Asks the server who it is. `ask` sends a request of the gateway's own, `params` as JSON text. Rejects with
   * GatewayError.
   */
  greet(link: Link, ask: (method: string, params: string) => Promise<Message>): Promise<ServerFacts>;
}
