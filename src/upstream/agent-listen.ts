import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { Exchange } from '../pipeline/exchange.js';
import type { ListKind } from '../protocol/methods.js';
import { concerns, type Filter, NOTHING } from '../protocol/subscription-filter.js';
import { acknowledgement, listenEnd, stamped } from '../protocol/subscription-messages.js';
import { type Message, readMessage } from '../wire/message.js';
import { Notices } from './notices.js';

/** One agent's `subscriptions/listen`, from its arrival to its end. */
export class AgentListen {
  readonly wanted: Filter;
  /** JSON text of an object with members of the filter that the server honours and nobody here knows. */
  others = '{}';
  /** Resolves with the response where the servers' side ends it; rejects with GatewayError where it cannot go on. */
  readonly ended: Promise<Message>;
  readonly #exchange: Exchange;
  readonly #notices: Notices;
  #honoured: Filter | undefined;
  #finish!: (response: Message) => void;
  #fail!: (failure: unknown) => void;
  readonly #gone = () => this.fail(new GatewayError('cancelled', 'The subscription was ended'));

  constructor(exchange: Exchange, wanted: Filter, clock: Clock) {
    this.#exchange = exchange;
    this.wanted = wanted;
    this.#notices = new Notices(clock);
    this.ended = new Promise((resolve, reject) => {
      this.#finish = resolve;
      this.#fail = reject;
    });
    this.ended.catch(() => {});
    if (exchange.signal.aborted) this.#gone();
    else exchange.signal.addEventListener('abort', this.#gone, { once: true });
  }

  /** True once it was acknowledged. */
  get begun(): boolean {
    return this.#honoured !== undefined;
  }

  /** Nothing before it was acknowledged. */
  get honoured(): Filter {
    return this.#honoured ?? NOTHING;
  }

  /** Acknowledges what is honoured; from here on the agent is told. Once. */
  begin(honoured: Filter): void {
    if (this.begun || this.#exchange.signal.aborted) return;
    this.#honoured = honoured;
    this.#exchange.notify(acknowledgement(this.#exchange.message.id, honoured, this.others));
  }

  /** Tells of a changed list, if that was asked for. */
  changed(kind: ListKind, message: Message): void {
    if (this.honoured.kinds.has(kind)) this.#notices.tell(kind, () => this.tell(message));
  }

  /** Tells of a changed resource, if that was asked for. */
  updated(uri: string, message: Message): void {
    if (concerns(this.honoured.uris, uri)) this.tell(message);
  }

  /** Tells the agent in any case. Throws JsonError for a message that cannot be stamped. */
  tell(message: Message): void {
    this.#exchange.notify(stamped(message, this.#exchange.message.id));
  }

  /** Ends it gently. */
  finish(): void {
    this.#finish(readMessage(listenEnd(this.#exchange.message.id)));
  }

  fail(failure: unknown): void {
    this.#fail(failure);
  }

  /** Nothing is told from here on. */
  stop(): void {
    this.#notices.pause();
    this.#honoured = NOTHING;
    this.#exchange.signal.removeEventListener('abort', this.#gone);
  }
}
