import { type Filter, filterText, NOTHING, readFilter } from '../protocol/subscription-filter.js';
import type { Message } from '../wire/message.js';
import type { Connection } from './connection.js';

export interface ServerListenDeps {
  /** JSON text of the `_meta` of the request. */
  readonly meta: string;
  /** The server acknowledged: before anything else of this stream, and of any message behind it. */
  readonly acknowledged: (listen: ServerListen) => void;
  readonly heard: (listen: ServerListen, message: Message) => void;
  /** It ended, by no act of ours: `answer` is the server's response, undefined where the stream broke. */
  readonly ended: (listen: ServerListen, answer: Message | undefined, failure: unknown) => void;
}

/** One `subscriptions/listen` that is open at a server. */
export class ServerListen {
  readonly filter: Filter;
  #honoured: Filter | undefined;
  readonly #end = new AbortController();

  constructor(filter: Filter) {
    this.filter = filter;
  }

  /** What the server agreed to; nothing before it did. */
  get honoured(): Filter {
    return this.#honoured ?? NOTHING;
  }

  open(connection: Connection, deps: ServerListenDeps): void {
    const params = `{"_meta":${deps.meta},"notifications":${filterText(this.filter)}}`;
    const listener = (message: Message) => this.#take(message, deps);
    connection.stream('subscriptions/listen', params, { signal: this.#end.signal, listener }).then(
      (answer) => this.#ended(deps, answer, undefined),
      (failure: unknown) => this.#ended(deps, undefined, failure),
    );
  }

  close(): void {
    this.#end.abort();
  }

  #take(message: Message, deps: ServerListenDeps): void {
    if (this.#end.signal.aborted) return;
    if (message.method !== 'notifications/subscriptions/acknowledged') return deps.heard(this, message);
    if (this.#honoured) return;
    this.#honoured = readFilter(message) ?? NOTHING;
    deps.acknowledged(this);
  }

  #ended(deps: ServerListenDeps, answer: Message | undefined, failure: unknown): void {
    if (this.#end.signal.aborted) return;
    this.#end.abort();
    deps.ended(this, answer, failure);
  }
}
