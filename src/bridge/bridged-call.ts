import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { Agent, AskOptions, Caller, Exchange, Handler } from '../pipeline/exchange.js';
import { splice } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';
import { mayBeAsked } from './askable.js';
import { isObject, paramOf, textOf } from './members.js';

/** A request of the server that its call waits for. */
export interface Question {
  readonly key: string;
  readonly message: Message;
}

interface Open extends Question {
  readonly resolve: (response: Message) => void;
  readonly reject: (error: GatewayError) => void;
}

/** How one request of the agent ends: with the answer, or with what the server asks. */
export type LegEnd =
  | { readonly kind: 'answer'; readonly message: Message }
  | { readonly kind: 'questions'; readonly questions: readonly Question[] };

type Outcome = { readonly message: Message } | { readonly failure: unknown };

export interface BridgedCallOptions {
  /** The agent's first request. */
  readonly upper: Exchange;
  /** What goes to the server. */
  readonly message: Message;
  readonly agent: Agent;
  /** False to refuse whatever is asked: as many calls wait as may. */
  readonly mayPark: () => boolean;
  readonly clock: Clock;
}

/** Servers that need several answers ask for them at once: they make one round. */
const GATHER_MS = 20;

/**
 * One call to a legacy server on behalf of a modern agent. It stays the same call through as many requests of the agent
 * as it takes: each is a leg, and between two legs nobody is there.
 */
export class BridgedCall implements Exchange {
  readonly era = 'legacy';
  readonly serverId: string;
  readonly message: Message;
  readonly agent: Agent;
  readonly caller: Caller;
  readonly fresh: boolean;
  readonly #mayPark: () => boolean;
  readonly #clock: Clock;
  readonly #abort = new AbortController();
  /** JSON text of the progress token that the server was given. */
  readonly #token: string | undefined;
  readonly #questions = new Map<string, Open>();
  #leg: Exchange | undefined;
  #wake: () => void = () => {};
  #outcome: Outcome | undefined;
  #lastKey = 0;

  constructor({ upper, message, agent, mayPark, clock }: BridgedCallOptions) {
    this.serverId = upper.serverId;
    this.message = message;
    this.agent = agent;
    this.caller = upper.caller;
    this.fresh = upper.fresh;
    this.#mayPark = mayPark;
    this.#clock = clock;
    this.#token = tokenOf(upper.message);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** True while a request of the agent waits for it. */
  get attended(): boolean {
    return this.#leg !== undefined;
  }

  /** Sends it to the server. */
  begin(next: Handler): void {
    next(this).then(
      (message) => this.#settle({ message }),
      (failure: unknown) => this.#settle({ failure }),
    );
  }

  /** Waits on behalf of one request of the agent, whose end takes the call with it. Rejects as the call does. */
  async leg(upper: Exchange): Promise<LegEnd> {
    const given = () => this.abort(upper.signal.reason);
    if (upper.signal.aborted) given();
    upper.signal.addEventListener('abort', given, { once: true });
    this.#leg = upper;
    try {
      for (;;) {
        while (!this.#outcome && this.#questions.size === 0)
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        if (!this.#outcome) await this.#gather();
        // Meanwhile it may be over, or have nothing to ask any more.
        if (this.#outcome || this.#questions.size > 0) break;
      }
      if (!this.#outcome) return { kind: 'questions', questions: [...this.#questions.values()] };
      if ('failure' in this.#outcome) throw this.#outcome.failure;
      return { kind: 'answer', message: this.#outcome.message };
    } finally {
      upper.signal.removeEventListener('abort', given);
      this.#leg = undefined;
    }
  }

  /** Gives the server what it asked for; `result` is JSON text. */
  answer(key: string, result: string): void {
    const open = this.#questions.get(key);
    if (!open) return;
    this.#questions.delete(key);
    open.resolve(readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${open.message.id},"result":${result}}`)));
  }

  /** Ends it wherever it is. */
  abort(reason: unknown): void {
    if (this.#outcome) return;
    this.#abort.abort(reason);
    for (const open of this.#questions.values()) open.reject(this.#unreachable('The call was given up'));
    this.#questions.clear();
  }

  notify(message: Message): void {
    const leg = this.#leg;
    const forLeg =
      leg && (message.method === 'notifications/progress' ? this.#progress(message, leg) : message);
    if (forLeg) leg.notify(forLeg);
  }

  ask(message: Message, { signal }: AskOptions): Promise<Message> {
    const refused = this.#refusal(message);
    if (refused !== undefined) return Promise.reject(this.#unreachable(refused));
    const key = `q${++this.#lastKey}`;
    return new Promise((resolve, reject) => {
      this.#questions.set(key, { key, message, resolve, reject });
      const withdrawn = () => {
        if (this.#questions.delete(key)) reject(this.#unreachable('The question was withdrawn'));
      };
      signal.addEventListener('abort', withdrawn, { once: true });
      this.#wake();
    });
  }

  /** Waits for what a server asks at the same time as its first question. */
  #gather(): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.after(GATHER_MS, resolve);
    });
  }

  #refusal(question: Message): string | undefined {
    if (this.#outcome || this.#abort.signal.aborted) return 'The call is over';
    if (!mayBeAsked(this.agent.profile, this.message.method, question))
      return 'The agent does not offer this';
    return this.#mayPark() ? undefined : 'Too many calls wait for their agents already';
  }

  #settle(outcome: Outcome): void {
    this.#outcome = outcome;
    this.#wake();
  }

  /** Progress under the token of the request that waits now; none where it gave none. */
  #progress(message: Message, leg: Exchange): Message | undefined {
    const token = tokenOf(leg.message);
    if (token === undefined || token === this.#token) return token === undefined ? undefined : message;
    // What was edited on its way has lost its ranges.
    const read = readMessage(message.bytes);
    const span = paramOf(read, 'progressToken');
    return span && readMessage(splice(read.bytes, [{ ...span, text: token }]));
  }

  #unreachable(why: string): GatewayError {
    return new GatewayError('agent_unreachable', why, { serverId: this.serverId });
  }
}

function tokenOf(message: Message): string | undefined {
  const meta = paramOf(message, '_meta');
  const span = isObject(message, meta) ? paramOf(message, '_meta', 'progressToken') : undefined;
  return span && textOf(message, span);
}
