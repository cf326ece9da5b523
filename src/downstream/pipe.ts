import { GatewayError } from '../base/errors.js';
import { unguessableId } from '../base/random.js';
import type { EventSink } from '../pipeline/events.js';
import type { Caller } from '../pipeline/exchange.js';
import { result } from '../protocol/compose.js';
import { LEGACY_REVISIONS, MODERN_REVISIONS } from '../protocol/revisions.js';
import { isBatch, type Message, readMessage } from '../wire/message.js';
import type { Backend } from './backend.js';
import { BATCH_REVISION, readBatch } from './batch.js';
import { errorBytes, failureOf } from './errors.js';
import { greet } from './initialize.js';
import { isModern } from './modern-request.js';
import { profileOf } from './profile.js';
import type { PipeOutlet, Reply } from './reply.js';
import { Session } from './session.js';
import { StdioModern } from './stdio-modern.js';

export interface PipeOptions {
  readonly serverId: string;
  readonly backend: Backend;
  readonly emit: EventSink;
  /** Requests of the modern era are served too, beside the session. */
  readonly modern?: boolean;
}

/** Requests that may come before `initialize` is answered. */
const MAX_EARLY = 256;

/**
 * An agent whose messages all take one way in and one way out: stdio, or the HTTP+SSE pair. Answers leave in the order
 * in which they are ready. Each `initialize` begins a session; the one before it, if any, is over. Requests that declare
 * a revision of the modern era belong to none.
 */
export class Pipe {
  readonly #options: PipeOptions;
  readonly #outlet: PipeOutlet;
  readonly #reply: Reply;
  readonly #modern: StdioModern | undefined;
  #session: Session | undefined;
  /** What waits for `initialize` to be answered. */
  #early: (() => void)[] = [];
  #running = 0;
  #whenIdle: (() => void)[] = [];
  #ended = false;

  constructor(options: PipeOptions, outlet: PipeOutlet) {
    this.#options = options;
    this.#outlet = outlet;
    this.#reply = {
      send: (bytes) => outlet.send(bytes),
      answer: (bytes) => outlet.answer(bytes),
      fail: (failure, id) => outlet.answer(errorBytes(failure, id)),
      silence: () => {},
    };
    const counted = { began: () => this.#began(), ended: () => this.#finished() };
    this.#modern = options.modern ? new StdioModern({ ...options, ...counted, outlet }) : undefined;
  }

  /** The messages of one text: one, or several where the revision has batches. Throws MessageError. */
  read(text: Buffer): Message[] {
    const batch = this.#session?.revision === BATCH_REVISION && isBatch(text);
    return batch ? readBatch(text) : [readMessage(text)];
  }

  /** Takes one message. Never throws: what is wrong with it is answered. */
  take(message: Message, caller: Caller): void {
    if (this.#ended) return;
    if (message.kind !== 'request') this.#receive(message, caller);
    else if (message.method === 'initialize') void this.#initialize(message, caller);
    else if (this.#modern && isModern(message)) this.#modern.take(message, caller);
    else if (this.#session?.revision !== undefined) void this.#request(this.#session, message, caller);
    else this.#tooEarly(message, caller);
  }

  /** Settles when nothing is under way. */
  async idle(): Promise<void> {
    if (this.#running > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  /** Nothing new comes: what lasts for ever ends. */
  drain(): void {
    this.#modern?.endSubscriptions();
  }

  /** The agent is gone, or is sent away: what is under way is answered with `why`. Idempotent. */
  end(why?: GatewayError): void {
    this.#ended = true;
    this.#early = [];
    this.#session?.end(why);
    this.#modern?.end(why);
  }

  /** Takes what is no request. */
  #receive(message: Message, caller: Caller): void {
    const session = this.#session;
    const others = (id: string) => session?.inFlightOf(id) ?? 0;
    if (message.kind === 'notification' && this.#modern?.takeNotification(message, caller, others, !session))
      return;
    session?.receive(message, caller);
  }

  async #initialize(message: Message, caller: Caller): Promise<void> {
    const { serverId, backend, emit } = this.#options;
    this.#session?.end();
    this.#session = undefined;
    await this.#run(async () => {
      try {
        const session = new Session(unguessableId(), serverId, profileOf(message), backend, emit);
        this.#session = session;
        await greet(session, message, caller, this.#reply);
        if (session.revision === undefined || session.ended) this.#forget(session);
        else session.listen(this.#outlet, caller);
      } finally {
        // Still within this run: what waited is under way before anybody finds the pipe idle.
        this.#proceed();
      }
    }, message);
  }

  #proceed(): void {
    const early = this.#early;
    this.#early = [];
    for (const proceed of early) proceed();
  }

  #request(session: Session, message: Message, caller: Caller): Promise<void> {
    return this.#run(() => session.request(message, caller, false, this.#reply), message);
  }

  #tooEarly(message: Message, caller: Caller): void {
    if (message.method === 'ping') return this.#outlet.answer(result(message.id, {}).bytes);
    if (this.#session && this.#early.length < MAX_EARLY) this.#early.push(() => this.take(message, caller));
    else this.#fail(this.#noSession(), message);
  }

  #noSession(): GatewayError {
    if (!this.#modern) return new GatewayError('invalid_request', '`initialize` comes first');
    const message = '`initialize` comes first, unless each request declares its revision in `params._meta`';
    const supported = [...LEGACY_REVISIONS, ...MODERN_REVISIONS];
    return new GatewayError('invalid_request', message, { data: { supported } });
  }

  async #run(work: () => Promise<void>, message: Message): Promise<void> {
    this.#began();
    try {
      await work();
    } catch (error) {
      this.#fail(error, message);
    }
    this.#finished();
  }

  #began(): void {
    this.#running++;
  }

  #finished(): void {
    if (--this.#running > 0) return;
    const waiting = this.#whenIdle;
    this.#whenIdle = [];
    for (const resolve of waiting) resolve();
  }

  #forget(session: Session): void {
    session.end();
    if (this.#session === session) this.#session = undefined;
  }

  #fail(error: unknown, message: Message): void {
    this.#outlet.answer(errorBytes(failureOf(error, this.#options.serverId), message.id));
  }
}
