import type { Clock, Timer } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import { sha256Hex } from '../base/hash.js';
import { unguessableId } from '../base/random.js';
import type { EventSink } from '../pipeline/events.js';
import type { Exchange } from '../pipeline/exchange.js';
import type { BridgedCall } from './bridged-call.js';
import { digestOf } from './legacy-request.js';
import { ownerKey } from './pseudo-agents.js';
import { type State, StateSeal } from './sealed-state.js';

export interface ParkedCallsOptions {
  readonly clock: Clock;
  readonly emit: EventSink;
  /** How long a call is held for the next request of its agent. */
  readonly parkMs: number;
}

interface Parked {
  readonly call: BridgedCall;
  readonly timer: Timer;
}

/**
 * The calls that wait for their agents' next request. What an agent brings back is sealed, and good for one round of one
 * call of its own.
 */
export class ParkedCalls {
  readonly #options: ParkedCallsOptions;
  readonly #seal = new StateSeal();
  /** By handles, of which each is used once. */
  readonly #parked = new Map<string, Parked>();

  constructor(options: ParkedCallsOptions) {
    this.#options = options;
  }

  /** Holds a call for its agent's next request; returns the `requestState` of that. */
  park(call: BridgedCall, upper: Exchange): string {
    const { clock, parkMs } = this.#options;
    const handle = unguessableId();
    const state = this.#seal.seal(this.#stateOf(upper, handle));
    const timer = clock.after(parkMs, () => this.#expire(handle));
    this.#parked.set(handle, { call, timer });
    this.#tell('call_parked', call.serverId);
    return state;
  }

  /** The `requestState` of a request that is simply run again. */
  again(upper: Exchange): string {
    return this.#seal.seal(this.#stateOf(upper, ''));
  }

  /**
   * The call that a request goes on with; undefined where it is run anew. Throws GatewayError `invalid_params` for a
   * state that is not this caller's, not this request's, or used up.
   */
  resume(upper: Exchange, requestState: string): BridgedCall | undefined {
    const state = this.#seal.open(requestState);
    if (!state || !isFor(state, upper)) throw refused('is none of this request', upper);
    if (this.#options.clock.now() >= state.expiresAt) throw refused('has expired', upper);
    if (state.call === '') return undefined;
    const parked = this.#parked.get(state.call);
    if (!parked) throw refused('was used already, or its call is over', upper);
    this.#release(state.call, parked);
    this.#tell('call_resumed', upper.serverId);
    return parked.call;
  }

  /** Gives every call up. */
  close(): void {
    for (const [handle, parked] of this.#parked) {
      this.#release(handle, parked);
      parked.call.abort(new GatewayError('shutting_down', 'The gateway is shutting down'));
    }
  }

  #stateOf(upper: Exchange, call: string): State {
    const { clock, parkMs } = this.#options;
    return { call, ...bindingOf(upper), expiresAt: clock.now() + parkMs };
  }

  #expire(handle: string): void {
    const parked = this.#parked.get(handle);
    if (!parked) return;
    const { serverId } = parked.call;
    this.#release(handle, parked);
    this.#tell('call_expired', serverId);
    parked.call.abort(new GatewayError('cancelled', 'The agent did not bring what was asked', { serverId }));
  }

  #release(handle: string, { timer }: Parked): void {
    timer.cancel();
    this.#parked.delete(handle);
  }

  #tell(type: 'call_parked' | 'call_resumed' | 'call_expired', serverId: string): void {
    this.#options.emit({ type, serverId, parked: this.#parked.size });
  }
}

/** Whom and what a state is for. */
function bindingOf({ serverId, agent, caller, message }: Exchange): Omit<State, 'call' | 'expiresAt'> {
  return {
    serverId,
    owner: ownerKey(caller),
    fingerprint: sha256Hex(agent.profile.fingerprint),
    method: message.method,
    digest: digestOf(message),
  };
}

function isFor(state: State, upper: Exchange): boolean {
  const wanted = bindingOf(upper);
  return (
    state.serverId === wanted.serverId &&
    state.owner === wanted.owner &&
    state.fingerprint === wanted.fingerprint &&
    state.method === wanted.method &&
    state.digest === wanted.digest
  );
}

function refused(why: string, { serverId, message }: Exchange): GatewayError {
  const what = `The requestState ${why}; send ${message.method} anew, without inputResponses and requestState`;
  return new GatewayError('invalid_params', what, { serverId });
}
