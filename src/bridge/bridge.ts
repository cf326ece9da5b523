import { GatewayError } from '../base/errors.js';
import type { Agent, Caller, Exchange, Handler, Layer } from '../pipeline/exchange.js';
import { type Era, eraOf } from '../protocol/revisions.js';
import type { Message } from '../wire/message.js';
import type { BridgeDeps } from './deps.js';
import { ToLegacy } from './to-legacy.js';
import { ToModern } from './to-modern.js';

/**
 * Brings together agents and servers of different eras. Where both speak the same, nothing is touched.
 */
export class Bridge {
  readonly layer: Layer;
  readonly #deps: BridgeDeps;
  readonly #toLegacy: ToLegacy;
  readonly #toModern: ToModern;

  constructor(deps: BridgeDeps) {
    this.#deps = deps;
    this.#toLegacy = new ToLegacy(deps);
    this.#toModern = new ToModern(deps);
    this.layer = (exchange, next) =>
      exchange.era === 'modern' ? this.#modern(exchange, next) : this.#legacy(exchange, next);
  }

  /** Takes a notification of an agent. Throws GatewayError. */
  notify(serverId: string, agent: Agent, caller: Caller, message: Message): void {
    if (this.#crosses(serverId, agent) === undefined)
      return this.#deps.servers.notify(serverId, agent, caller, message);
    // Neither era has a notification of agents that would mean anything in the other.
    const { emit } = this.#deps;
    emit({ type: 'message_dropped', serverId, method: message.method, why: 'the server is of another era' });
  }

  /** A legacy agent's general stream is open. Throws GatewayError. */
  listen(serverId: string, agent: Agent, caller: Caller): void {
    if (this.#crosses(serverId, agent) === 'modern') this.#toModern.listen(serverId, agent, caller);
    else this.#deps.servers.listen(serverId, agent, caller);
  }

  leave(agent: Agent): void {
    this.#toModern.leave(agent);
    this.#deps.servers.leave(agent);
  }

  /** Ends what is held: parked calls, listening in agents' names. */
  close(): void {
    this.#toLegacy.close();
    this.#toModern.close();
  }

  /** The server's era where it is not the agent's own. */
  #crosses(serverId: string, agent: Agent): Era | undefined {
    const own = eraOf(agent.profile.revision);
    const served = this.#deps.eras.recall(serverId, own) ?? own;
    return served === own ? undefined : served;
  }

  async #modern(exchange: Exchange, next: Handler): Promise<Message> {
    const { eras } = this.#deps;
    const era = eras.recall(exchange.serverId, 'modern') ?? (await eras.find(exchange));
    const toLegacy = () => this.#toLegacy.handle(exchange, next);
    const [way, other] = era === 'modern' ? [next, toLegacy] : [toLegacy, next];
    try {
      return await way(exchange);
    } catch (failure) {
      if (!this.#turned(failure, exchange, era)) throw failure;
      return await other(exchange);
    }
  }

  #legacy(exchange: Exchange, next: Handler): Promise<Message> {
    const { eras } = this.#deps;
    if (eras.recall(exchange.serverId, 'legacy') === 'modern') return this.#translated(exchange, next);
    if (exchange.message.method === 'initialize') return this.#initialize(exchange, next);
    return next(exchange).catch((failure: unknown) => {
      if (!this.#turned(failure, exchange, 'legacy')) throw failure;
      return this.#toModern.handle(exchange, next);
    });
  }

  async #translated(exchange: Exchange, next: Handler): Promise<Message> {
    try {
      return await this.#toModern.handle(exchange, next);
    } catch (failure) {
      if (!this.#turned(failure, exchange, 'modern')) throw failure;
      return next(exchange);
    }
  }

  /** Whether a failure says that the server speaks another era than the one it was asked in; nothing ran then. */
  #turned(failure: unknown, { serverId, era }: Exchange, asked: Era): boolean {
    if (!(failure instanceof GatewayError) || failure.code !== 'other_era') return false;
    return this.#deps.eras.recall(serverId, era) !== asked;
  }

  /** A server that refuses `initialize` may be one that has no sessions any more. */
  async #initialize(exchange: Exchange, next: Handler): Promise<Message> {
    let refused: Message | GatewayError;
    try {
      const answer = await next(exchange);
      if (answer.kind !== 'error') return answer;
      refused = answer;
    } catch (failure) {
      if (!(failure instanceof GatewayError) || !mayBeModern(failure)) throw failure;
      refused = failure;
    }
    const era = await this.#deps.eras.find(exchange).catch(() => 'legacy' as const);
    if (era === 'modern') return this.#toModern.handle(exchange, next);
    if (refused instanceof GatewayError) throw refused;
    return refused;
  }
}

/** Whether a server that failed to initialize gave a reason that a modern server would give. */
function mayBeModern({ code, details: { status } }: GatewayError): boolean {
  if (code === 'server_timeout') return true;
  return (
    code === 'server_unavailable' && status !== undefined && status >= 400 && status < 500 && status !== 429
  );
}
