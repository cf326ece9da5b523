import type { Agent, Caller, Exchange, Handler } from '../pipeline/exchange.js';
import type { Message } from '../wire/message.js';
import type { BridgeDeps } from './deps.js';

/** Legacy agents on modern servers. */
export class ToModern {
  readonly #deps: BridgeDeps;

  constructor(deps: BridgeDeps) {
    this.#deps = deps;
  }

  handle(exchange: Exchange, next: Handler): Promise<Message> {
    return next(exchange);
  }

  listen(serverId: string, agent: Agent, caller: Caller): void {
    this.#deps.servers.listen(serverId, agent, caller);
  }

  leave(_agent: Agent): void {}

  close(): void {}
}
