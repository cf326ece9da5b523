import type { Clock, Timer } from '../base/clock.js';
import type { Message } from '../wire/message.js';
import type { Connection } from './connection.js';
import { timedOut } from './request-failures.js';

const METHOD = 'subscriptions/listen';

/** How a subscription ended by no act of ours. */
export type ServerListenEnd =
  | { readonly kind: 'answered'; readonly answer: Message }
  /** By `notifications/cancelled`. */
  | { readonly kind: 'withdrawn' }
  | { readonly kind: 'broken'; readonly failure: unknown };

export interface ServerListenEvents {
  /** Called before anything else of this stream, and before any message that the server sent behind it. */
  readonly acknowledged: (acknowledgement: Message) => void;
  readonly heard: (message: Message) => void;
  /** Called once, and nothing follows. */
  readonly ended: (end: ServerListenEnd) => void;
}

export interface ServerListenRequest {
  readonly serverId: string;
  /** JSON text of `_meta`. */
  readonly meta: string;
  /** JSON text of `notifications`. */
  readonly filter: string;
  readonly clock: Clock;
  /** Until the server must have acknowledged, in milliseconds. */
  readonly ackMs: number;
}

/** One `subscriptions/listen` that is open at a server, until `close` or its own end. */
export class ServerListen {
  readonly #events: ServerListenEvents;
  readonly #end = new AbortController();
  readonly #late: Timer;
  #acknowledged = false;

  constructor(connection: Connection, request: ServerListenRequest, events: ServerListenEvents) {
    this.#events = events;
    const { serverId, meta, filter, clock, ackMs } = request;
    this.#late = clock.after(ackMs, () =>
      this.#ended({ kind: 'broken', failure: timedOut(serverId, METHOD, ackMs) }),
    );
    const params = `{"_meta":${meta},"notifications":${filter}}`;
    const listener = (message: Message) => this.#take(message);
    connection.stream(METHOD, params, { signal: this.#end.signal, listener }).then(
      (answer) => this.#ended({ kind: 'answered', answer }),
      (failure: unknown) => this.#ended({ kind: 'broken', failure }),
    );
  }

  /** Ends it: nothing more is told of it. */
  close(): void {
    this.#late.cancel();
    this.#end.abort();
  }

  #take(message: Message): void {
    if (this.#end.signal.aborted) return;
    switch (message.method) {
      case 'notifications/subscriptions/acknowledged':
        if (this.#acknowledged) return;
        this.#acknowledged = true;
        this.#late.cancel();
        return this.#events.acknowledged(message);
      case 'notifications/cancelled':
        return this.#ended({ kind: 'withdrawn' });
      default:
        return this.#events.heard(message);
    }
  }

  #ended(end: ServerListenEnd): void {
    if (this.#end.signal.aborted) return;
    this.close();
    this.#events.ended(end);
  }
}
