import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { Agent, AskOptions, Caller, Exchange, Handler } from '../pipeline/exchange.js';
import { JsonError } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';
import { mayBeAsked } from './askable.js';
import { asInputRequest } from './input-required.js';
import { isNews, onStreamOf, progressTokenOf } from './leg-notices.js';
import type { Place } from './parking-room.js';

/** A request of the server that its call waits for. */
export interface Question {
  readonly key: string;
  /** JSON text of it as it stands in `inputRequests`. */
  readonly request: string;
}

interface Open extends Question {
  /** JSON text of the server's own id. */
  readonly id: string;
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
  /** Where it waits for its agent; without one, whatever the server asks is refused. */
  readonly place: Place;
  readonly clock: Clock;
  /** What the keys of its questions begin with. */
  readonly keyPrefix?: string;
}

/** Servers that need several answers ask for them at once: they make one round. */
const GATHER_MS = 20;
const WITHDRAWN = 'The question was withdrawn';

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
  readonly #place: Place;
  readonly #clock: Clock;
  readonly #keyPrefix: string;
  readonly #abort = new AbortController();
  /** JSON text of the progress token that the server was given. */
  readonly #token: string | undefined;
  readonly #questions = new Map<string, Open>();
  #leg: Exchange | undefined;
  #wake: () => void = () => {};
  #outcome: Outcome | undefined;
  #hasPlace = false;
  #lastKey = 0;

  constructor({ upper, message, agent, place, clock, keyPrefix = 'q' }: BridgedCallOptions) {
    this.serverId = upper.serverId;
    this.message = message;
    this.agent = agent;
    this.caller = upper.caller;
    this.fresh = upper.fresh;
    this.#place = place;
    this.#clock = clock;
    this.#keyPrefix = keyPrefix;
    this.#token = progressTokenOf(message);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** True once the server has answered, or cannot any more. */
  get over(): boolean {
    return this.#outcome !== undefined;
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
    this.#leaveUnneededPlace();
    try {
      const end = await this.#end();
      if (end.kind === 'answer') this.#close('The call is over');
      return end;
    } finally {
      upper.signal.removeEventListener('abort', given);
      this.#leg = undefined;
    }
  }

  /** Without a request of the agent that waits: what the server asks, as soon as it asks, or after so long. */
  async questions(withinMs: number): Promise<readonly Question[]> {
    if (this.#questions.size === 0 && !this.#outcome) await this.#woken(withinMs);
    if (this.#questions.size > 0) await this.#gather();
    return [...this.#questions.values()];
  }

  /** Gives the server what it asked for; `result` is JSON text. Unknown keys are ignored. */
  answer(key: string, result: string): void {
    const open = this.#questions.get(key);
    if (!open) return;
    this.#questions.delete(key);
    open.resolve(readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${open.id},"result":${result}}`)));
  }

  /** Ends it wherever it is. */
  abort(reason: unknown): void {
    if (!this.#outcome) this.#abort.abort(reason);
    this.#close('The call was given up');
  }

  notify(message: Message): void {
    if (isNews(message.method)) return this.agent.notify(message);
    const leg = this.#leg;
    const told = leg && onStreamOf(leg.message, message, this.#token);
    if (told) leg.notify(told);
  }

  ask(message: Message, { signal }: AskOptions): Promise<Message> {
    const request = signal.aborted ? this.#unreachable(WITHDRAWN) : this.#asked(message);
    if (request instanceof GatewayError) return Promise.reject(request);
    const key = `${this.#keyPrefix}${++this.#lastKey}`;
    return new Promise((resolve, reject) => {
      this.#questions.set(key, { key, request, id: message.id, resolve, reject });
      const withdrawn = () => {
        if (!this.#questions.delete(key)) return;
        if (this.#leg) this.#leaveUnneededPlace();
        reject(this.#unreachable(WITHDRAWN));
      };
      signal.addEventListener('abort', withdrawn, { once: true });
      this.#wake();
    });
  }

  /** The answer, or what is asked first. */
  async #end(): Promise<LegEnd> {
    for (;;) {
      while (!this.#outcome && this.#questions.size === 0)
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      if (!this.#outcome) await this.#gather();
      // Meanwhile it may be over, or have nothing to ask any more.
      if (!this.#outcome && this.#questions.size === 0) continue;
      if (!this.#outcome) return { kind: 'questions', questions: [...this.#questions.values()] };
      if ('failure' in this.#outcome) throw this.#outcome.failure;
      return { kind: 'answer', message: this.#outcome.message };
    }
  }

  #woken(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.after(withinMs, resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  /** Waits for what a server asks at the same time as its first question. */
  #gather(): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.after(GATHER_MS, resolve);
    });
  }

  /** JSON text of what the agent is asked, or why it is not. */
  #asked(question: Message): string | GatewayError {
    if (this.#outcome || this.#abort.signal.aborted) return this.#unreachable('The call is over');
    try {
      if (!mayBeAsked(this.agent.profile, this.message.method, question))
        return this.#unreachable('The agent does not offer this');
      const request = asInputRequest(question);
      this.#hasPlace ||= this.#place.take();
      return this.#hasPlace ? request : this.#unreachable('Too many calls wait for their agents already');
    } catch (failure) {
      if (!(failure instanceof JsonError)) throw failure;
      return this.#unreachable(`The question is ambiguous: ${failure.message}`);
    }
  }

  /** What is still asked may be another call's, where the server did not tell: it is answered if its agent comes. */
  #settle(outcome: Outcome): void {
    this.#outcome = outcome;
    if ('failure' in outcome) this.#close('The call is over');
    this.#wake();
  }

  /** Nothing is asked any more. */
  #close(why: string): void {
    for (const open of this.#questions.values()) open.reject(this.#unreachable(why));
    this.#questions.clear();
    this.#giveUpPlace();
  }

  /** A call that is attended needs a place only for what it asks. */
  #leaveUnneededPlace(): void {
    if (this.#questions.size === 0) this.#giveUpPlace();
  }

  #giveUpPlace(): void {
    if (this.#hasPlace) this.#place.give();
    this.#hasPlace = false;
  }

  #unreachable(why: string): GatewayError {
    return new GatewayError('agent_unreachable', why, { serverId: this.serverId });
  }
}
