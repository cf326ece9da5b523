import type { Clock, Timer } from '../base/clock.js';
import type { Exchange } from '../pipeline/exchange.js';
import type { Message } from '../wire/message.js';

/** How long one request may take, in milliseconds. */
export interface RequestLimits {
  /** Without a sign of life; progress starts it anew, and it rests while the server waits for the agent. */
  readonly idleMs: number;
  /** In all. */
  readonly totalMs: number;
}

/** One request that was sent to a server and is not answered yet. */
export class Pending {
  readonly wireId: string;
  readonly method: string;
  /** The agent's exchange; undefined for a request of the gateway's own. */
  readonly exchange: Exchange | undefined;
  /** JSON text of the agent's own progress token, if it gave one. */
  readonly progressToken: string | undefined;
  /** Takes what the server sends before the answer of a request of the gateway's own. */
  readonly listener: ((message: Message) => void) | undefined;
  readonly answer: Promise<Message>;
  /** Aborted when the request ends without an answer: frees its stream and withdraws what the server asked in it. */
  readonly failed = new AbortController();
  settled = false;
  #resolve!: (message: Message) => void;
  #reject!: (error: unknown) => void;
  #timer: Timer | undefined;
  #asking = 0;
  #aliveAt: number;
  readonly #startedAt: number;
  readonly #clock: Clock;

  constructor(
    request: {
      wireId: string;
      method: string;
      exchange: Exchange | undefined;
      progressToken: string | undefined;
      listener?: (message: Message) => void;
    },
    clock: Clock,
    /** Undefined: it may last for ever. */
    limits: RequestLimits | undefined,
    onTimeout: (pending: Pending, elapsedMs: number) => void,
  ) {
    this.wireId = request.wireId;
    this.method = request.method;
    this.exchange = request.exchange;
    this.progressToken = request.progressToken;
    this.listener = request.listener;
    this.#clock = clock;
    this.#startedAt = this.#aliveAt = clock.now();
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (limits) this.#arm(limits, onTimeout);
  }

  resolve(message: Message): void {
    if (this.#settle()) this.#resolve(message);
  }

  reject(error: unknown): void {
    if (this.#settle()) this.#reject(error);
  }

  /** The server showed that it works on the request. */
  alive(): void {
    this.#aliveAt = this.#clock.now();
  }

  /** The server asked the agent something within this request: a person may need time. Returns the end of it. */
  asking(): () => void {
    this.#asking++;
    return () => {
      this.#asking--;
      this.alive();
    };
  }

  #settle(): boolean {
    if (this.settled) return false;
    this.settled = true;
    this.#timer?.cancel();
    return true;
  }

  #arm(limits: RequestLimits, onTimeout: (pending: Pending, elapsedMs: number) => void): void {
    const now = this.#clock.now();
    const idleUntil = (this.#asking > 0 ? now : this.#aliveAt) + limits.idleMs;
    const until = Math.min(idleUntil, this.#startedAt + limits.totalMs);
    if (now >= until) return onTimeout(this, now - this.#startedAt);
    this.#timer = this.#clock.after(until - now, () => this.#arm(limits, onTimeout));
  }
}
