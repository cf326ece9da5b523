import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { Exchange } from '../pipeline/exchange.js';
import type { ListKind } from '../protocol/methods.js';
import { concerns, type Filter, NOTHING } from '../protocol/subscription-filter.js';
import { acknowledgement, stamped } from '../protocol/subscription-messages.js';
import type { Message } from '../wire/message.js';
import { Notices } from './notices.js';

/** One agent's `subscriptions/listen`, from its acknowledgement to its end. */
export class AgentListen {
  readonly wanted: Filter;
  readonly #exchange: Exchange;
  readonly #notices: Notices;
  #honoured: Filter = NOTHING;

  constructor(exchange: Exchange, wanted: Filter, clock: Clock) {
    this.#exchange = exchange;
    this.wanted = wanted;
    this.#notices = new Notices(clock);
  }

  get honoured(): Filter {
    return this.#honoured;
  }

  /** Acknowledges what is honoured; from here on the agent is told. Settles when the agent ends it: rejects then. */
  begin(honoured: Filter): Promise<never> {
    const { signal, serverId } = this.#exchange;
    const ended = new Promise<never>((_, reject) => {
      const end = () => reject(new GatewayError('cancelled', 'The subscription was ended', { serverId }));
      if (signal.aborted) end();
      else signal.addEventListener('abort', end, { once: true });
    });
    this.#honoured = honoured;
    this.#exchange.notify(acknowledgement(this.#exchange.message.id, honoured));
    return ended;
  }

  /** Tells of a changed list, if that was asked for. */
  changed(kind: ListKind, message: Message): void {
    if (this.#honoured.kinds.has(kind)) this.#notices.tell(kind, () => this.#tell(message));
  }

  /** Tells of a changed resource, if that was asked for. */
  updated(uri: string, message: Message): void {
    if (concerns(this.#honoured.uris, uri)) this.#tell(message);
  }

  end(): void {
    this.#notices.pause();
    this.#honoured = NOTHING;
  }

  #tell(message: Message): void {
    this.#exchange.notify(stamped(message, this.#exchange.message.id));
  }
}
