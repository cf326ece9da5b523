import type { Failure } from './errors.js';

/** A place where messages to an agent are written. */
export interface Outlet {
  /** Sends a message's bytes. False when nobody can be reached that way. */
  send(bytes: Buffer): boolean;
}

/** The one way back to an agent. `answer` takes what it asked for; `send` takes the rest, and may refuse. */
export interface PipeOutlet extends Outlet {
  answer(bytes: Buffer): void;
}

/** What waits for the answer to one request. `send` takes what belongs to the request and comes before its response. */
export interface Reply extends Outlet {
  /** The response; its id is already the agent's own, `id`. Ends the reply. */
  answer(bytes: Buffer, id: string): void;
  /** A failure instead of a response to the request `id`. Ends the reply. */
  fail(failure: Failure, id: string): void;
  /** Ends the reply without a response: the agent took its request back. */
  silence(): void;
}
