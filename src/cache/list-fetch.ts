import type { Exchange, Handler } from '../pipeline/exchange.js';
import type { Message } from '../wire/message.js';
import type { Doubts } from './doubts.js';
import type { Fetch } from './flight.js';
import type { Generation } from './generations.js';
import { type LandingDeps, land } from './landing.js';
import type { ListRequest } from './list-request.js';

export interface ListFetchDeps extends LandingDeps {
  readonly doubts: Doubts;
}

/** Asks the server for one list and writes its answer down. */
export class ListFetch implements Fetch {
  readonly #request: ListRequest;
  readonly #next: Handler;
  readonly #deps: ListFetchDeps;
  #begun: { readonly generation: Generation; readonly doubts: number } | undefined;
  #over = false;

  constructor(request: ListRequest, next: Handler, deps: ListFetchDeps) {
    this.#request = request;
    this.#next = next;
    this.#deps = deps;
  }

  get current(): boolean {
    if (!this.#begun) return true;
    if (this.#over) return false;
    const { generation, doubts } = this.#begun;
    return generation.current && doubts === this.#deps.doubts.count(generation.subject.serverId);
  }

  async run(exchange: Exchange): Promise<Message> {
    const { own, shared } = this.#request;
    const doubts = this.#deps.doubts.count(own.serverId);
    const generation = this.#deps.generations.begin(own, shared.key);
    this.#begun = { generation, doubts };
    try {
      const answer = await this.#next(exchange);
      land({ request: this.#request, generation, doubts, answer }, this.#deps);
      return answer;
    } finally {
      this.#over = true;
      this.#deps.generations.end(generation);
    }
  }
}
