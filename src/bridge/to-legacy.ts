import type { Exchange, Handler } from '../pipeline/exchange.js';
import type { Message } from '../wire/message.js';
import type { BridgeDeps } from './deps.js';

/** Modern agents on legacy servers. */
export class ToLegacy {
  readonly #deps: BridgeDeps;

  constructor(deps: BridgeDeps) {
    this.#deps = deps;
  }

  handle(exchange: Exchange, next: Handler): Promise<Message> {
    void this.#deps;
    return next(exchange);
  }

  close(): void {}
}
