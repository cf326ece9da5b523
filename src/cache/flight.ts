import { GatewayError } from '../base/errors.js';
import type { Exchange } from '../pipeline/exchange.js';
import type { Message } from '../wire/message.js';

/** One fetch of one list. */
export interface Fetch {
  /** Asks the server; called at most once. */
  run(exchange: Exchange): Promise<Message>;
  /** False once something happened after which its answer may be out of date: later listings must not share it. */
  readonly current: boolean;
}

interface Waiter {
  readonly exchange: Exchange;
  readonly resolve: (answer: Message) => void;
  readonly reject: (failure: unknown) => void;
  readonly leave: () => void;
}

/** A fetch and the listings that wait for it. It goes on while one of them does, whoever began it. */
export class Flight {
  readonly #fetch: Fetch;
  readonly #onOver: (flight: Flight) => void;
  readonly #waiters = new Set<Waiter>();
  readonly #abort = new AbortController();

  /** `onOver` is called once nobody can join any more: before the answer is given out, or when all have left. */
  constructor(fetch: Fetch, onOver: (flight: Flight) => void) {
    this.#fetch = fetch;
    this.#onOver = onOver;
  }

  get current(): boolean {
    return this.#fetch.current;
  }

  /** The flight's answer or failure; `cancelled` for this listing alone when its own signal is aborted first. */
  wait(exchange: Exchange): Promise<Message> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiters.delete(waiter);
        reject(cancelled(exchange));
        if (this.#waiters.size === 0) this.#abandon(exchange.signal.reason);
      };
      const waiter: Waiter = { exchange, resolve, reject, leave };
      this.#waiters.add(waiter);
      exchange.signal.addEventListener('abort', leave, { once: true });
    });
  }

  /** Asks the server in the name of whoever has waited longest. Never rejects. */
  async launch(): Promise<void> {
    const [leader] = this.#waiters;
    if (!leader) return;
    try {
      const answer = await this.#fetch.run(this.#detached(leader));
      for (const waiter of this.#land()) waiter.resolve(answer);
    } catch (failure) {
      for (const waiter of this.#land()) waiter.reject(failure);
    }
  }

  #land(): Waiter[] {
    this.#onOver(this);
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const { exchange, leave } of waiters) exchange.signal.removeEventListener('abort', leave);
    return waiters;
  }

  #abandon(reason: unknown): void {
    this.#onOver(this);
    this.#abort.abort(reason);
  }

  /** The leader's exchange, on everybody's account: its channel reaches the leader while it waits. */
  #detached(leader: Waiter): Exchange {
    const { serverId, message, era, agent, caller, fresh } = leader.exchange;
    return {
      serverId,
      message,
      era,
      agent,
      caller,
      fresh,
      signal: this.#abort.signal,
      notify: (notification) => {
        if (this.#waiters.has(leader)) leader.exchange.notify(notification);
      },
      ask: (question, options) =>
        this.#waiters.has(leader)
          ? leader.exchange.ask(question, options)
          : Promise.reject(new GatewayError('agent_unreachable', 'The agent no longer waits', { serverId })),
    };
  }
}

export function cancelled({ serverId, message }: Exchange): GatewayError {
  return new GatewayError('cancelled', `${message.method} to server "${serverId}" was cancelled`, {
    serverId,
  });
}
