import type { Clock, Timer } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import { unguessableId } from '../base/random.js';
import type { EventSink } from '../pipeline/events.js';
import type { Exchange } from '../pipeline/exchange.js';
import type { BridgedCall } from './bridged-call.js';
import { digestOf } from './legacy-request.js';
import { type State, StateSeal } from './sealed-state.js';

export interface ParkedCallsOptions {
  readonly clock: Clock;
  readonly emit: EventSink;
  /** How long a call is held for the next request of its agent. */
  readonly parkMs: number;
  readonly maxParkedCalls: number;
}

interface Parked {
  readonly call: BridgedCall;
  readonly round: number;
  readonly timer: Timer;
}

/** Least number of calls that one agent may leave waiting, however few may wait in all. */
const LEAST_SHARE = 10;

/**
 * The calls that wait for their agents' next request. What an agent brings back is sealed, and good for one round of one
 * call of its own.
 */
export class ParkedCalls {
  readonly #options: ParkedCallsOptions;
  readonly #seal = new StateSeal();
  readonly #parked = new Map<string, Parked>();

  constructor(options: ParkedCallsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#parked.size;
  }

  /** Whether one more call may wait for an agent of this id. */
  hasRoom(agentId: string): boolean {
    const { maxParkedCalls } = this.#options;
    if (this.#parked.size >= maxParkedCalls) return false;
    let own = 0;
    for (const { call } of this.#parked.values()) if (call.agent.id === agentId) own++;
    return own < Math.max(LEAST_SHARE, maxParkedCalls / 10);
  }

  /** Holds a call for its agent's next request; returns the `requestState` of that. */
  park(call: BridgedCall, upper: Exchange, round: number): string {
    const { clock, parkMs } = this.#options;
    const handle = unguessableId();
    const timer = clock.after(parkMs, () => this.#expire(handle));
    this.#parked.set(handle, { call, round, timer });
    this.#tell('call_parked', call.serverId);
    return this.#seal.seal(this.#stateOf(upper, handle, round));
  }

  /** The `requestState` of a request that is simply run again. */
  again(upper: Exchange): string {
    return this.#seal.seal(this.#stateOf(upper, '', 0));
  }

  /**
   * The call that a request goes on with, and its round; undefined where it is run anew. Throws GatewayError
   * `invalid_params` for a state that is not this caller's, not this request's, or used up.
   */
  resume(upper: Exchange, requestState: string): Omit<Parked, 'timer'> | undefined {
    const state = this.#seal.open(requestState);
    if (!state || !isFor(state, upper)) throw refused('is none of this request', upper);
    if (this.#options.clock.now() >= state.expiresAt) throw refused('has expired', upper);
    if (state.call === '') return undefined;
    const parked = this.#parked.get(state.call);
    if (!parked || parked.round !== state.round)
      throw refused('was used already, or its call is over', upper);
    this.#release(state.call, parked);
    this.#tell('call_resumed', upper.serverId);
    return parked;
  }

  /** Gives every call up. */
  close(): void {
    for (const [handle, parked] of this.#parked) {
      this.#release(handle, parked);
      parked.call.abort(new GatewayError('shutting_down', 'The gateway is shutting down'));
    }
  }

  #stateOf({ serverId, caller, message }: Exchange, call: string, round: number): State {
    const { clock, parkMs } = this.#options;
    return {
      call,
      round,
      serverId,
      principal: caller.principal,
      tokenHash: caller.tokenHash ?? '',
      method: message.method,
      digest: digestOf(message),
      expiresAt: clock.now() + parkMs,
    };
  }

  #expire(handle: string): void {
    const parked = this.#parked.get(handle);
    if (!parked) return;
    const { call } = parked;
    this.#release(handle, parked);
    this.#tell('call_expired', call.serverId);
    call.abort(
      new GatewayError('cancelled', 'The agent did not bring what was asked', { serverId: call.serverId }),
    );
  }

  #release(handle: string, { timer }: Parked): void {
    timer.cancel();
    this.#parked.delete(handle);
  }

  #tell(type: 'call_parked' | 'call_resumed' | 'call_expired', serverId: string): void {
    this.#options.emit({ type, serverId, parked: this.#parked.size });
  }
}

function isFor(state: State, { serverId, caller, message }: Exchange): boolean {
  return (
    state.serverId === serverId &&
    state.principal === caller.principal &&
    state.tokenHash === (caller.tokenHash ?? '') &&
    state.method === message.method &&
    state.digest === digestOf(message)
  );
}

function refused(why: string, { serverId, message }: Exchange): GatewayError {
  const what = `The requestState ${why}; send ${message.method} anew, without inputResponses and requestState`;
  return new GatewayError('invalid_params', what, { serverId });
}
