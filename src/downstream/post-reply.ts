import type { ServerResponse } from 'node:http';
import type { DueList } from './due-list.js';
import { errorBytes, type Failure, refusal } from './errors.js';
import { type Due, EventStream, endEmptyStream } from './event-stream.js';
import type { HttpSession } from './http-session.js';
import type { Cursor } from './replay.js';
import type { Reply } from './reply.js';
import { sendFailure, sendJson } from './respond.js';

/** What a POST may be answered with, and what it waits for. */
export interface ReplyForm {
  /** The agent takes `application/json`. */
  readonly json: boolean;
  /** The agent takes `text/event-stream`. */
  readonly events: boolean;
  /** Requests in it; a batch has any number, everything else one. */
  readonly count: number;
  readonly batch: boolean;
  /** Headers of a stream, and of plain JSON once the session stands. */
  readonly headers: Readonly<Record<string, string>>;
}

const UNKEPT = refusal(200, 'The answer came while the agent was away, and is too large to be kept for it');

/**
 * The answer to one POST. It is held back until it is known what it becomes: plain JSON if the response comes first,
 * an event stream if anything else does, or if nothing comes for long. Once it is a stream it outlives its socket: it
 * goes on in the session's log, where a GET may take it up.
 */
export class PostReply implements Reply, Due {
  readonly #owner: HttpSession;
  readonly #res: ServerResponse;
  readonly #form: ReplyForm;
  readonly #primed: boolean;
  /** Responses that are still to come. */
  #left: number;
  #answers: Buffer[] | undefined;
  /** Number of the stream; 0 while the answer is held back. */
  #number = 0;
  #stream: EventStream | undefined;
  /** The socket went before anything was sent. */
  #lost = false;
  #done = false;

  constructor(owner: HttpSession, res: ServerResponse, form: ReplyForm) {
    this.#owner = owner;
    this.#res = res;
    this.#form = form;
    this.#primed = owner.primes && owner.session.revision !== undefined;
    this.#left = form.count;
    if (form.events) this.#waiting().add(this);
    res.on('close', () => this.#closed());
  }

  /** True when nobody has learnt anything of the answer, nor can. */
  get lost(): boolean {
    return this.#lost;
  }

  send(bytes: Buffer): boolean {
    if (this.#done) return false;
    if (this.#number === 0) {
      if (!this.#form.events || this.#lost) return this.#owner.session.sendGeneral(bytes);
      this.#begin();
    }
    this.#event(bytes);
    return true;
  }

  answer(bytes: Buffer, id: string): void {
    if (this.#done) return;
    if (this.#number !== 0) {
      const kept = this.#stream !== undefined || this.#owner.fits(bytes);
      this.#event(kept ? bytes : errorBytes(UNKEPT, id));
    } else {
      this.#answers ??= [];
      this.#answers.push(bytes);
    }
    this.#settled();
  }

  fail(failure: Failure, id: string): void {
    const held = this.#number === 0 && !this.#form.batch;
    if (!held || failure.status === 200 || this.#lost) return this.answer(errorBytes(failure, id), id);
    this.#finish();
    sendFailure(this.#res, failure, id);
  }

  silence(): void {
    if (!this.#done) this.#settled();
  }

  /** Nothing came for a while: the headers go out, and with them a place to resume from where the agent knows one. */
  due(): void {
    if (this.#number === 0 && !this.#lost && !this.#done) this.#begin();
  }

  /** Goes on where `cursor` is, on another response. */
  resume(res: ServerResponse, cursor: Cursor): void {
    this.#stream?.end();
    this.#owner.context.lingering.delete(this);
    this.#stream = this.#open(res, cursor);
    for (const frame of this.#owner.since(cursor)) this.#stream.write(frame);
  }

  /** Nobody came back for it. */
  expire(): void {
    this.#owner.session.abandon(this);
    if (!this.#done) this.#finish();
  }

  /** Where it waits to become a stream: soon for an agent that could resume it, else only in time to be a sign of life. */
  #waiting(): DueList<Due> {
    const { slow, keepAlive } = this.#owner.context;
    return this.#primed ? slow : keepAlive;
  }

  #begin(): void {
    this.#number = this.#owner.openStream(this);
    this.#waiting().delete(this);
    this.#stream = this.#open(this.#res);
    for (const bytes of this.#answers ?? []) this.#event(bytes);
    this.#answers = undefined;
  }

  #open(res: ServerResponse, cursor?: Cursor): EventStream {
    const opening = this.#owner.opening(this.#number, cursor);
    const gone = () => this.#gone(stream);
    const stream = new EventStream(res, this.#owner.context.keepAlive, gone, opening, this.#form.headers);
    return stream;
  }

  #event(bytes: Buffer): void {
    // Kept whether or not anybody reads at present.
    const frame = this.#owner.keep(this.#number, bytes);
    this.#stream?.write(frame);
  }

  #settled(): void {
    if (--this.#left > 0) return;
    if (this.#number === 0 && !this.#lost) this.#respond();
    this.#finish();
  }

  #respond(): void {
    const answers = this.#answers;
    if (answers && !this.#form.json) return this.#begin();
    if (!answers && this.#form.events) return endEmptyStream(this.#res);
    if (!answers) {
      this.#res.writeHead(202).end();
      return;
    }
    const only = this.#form.batch ? undefined : answers[0];
    const stands = this.#owner.session.revision !== undefined;
    sendJson(this.#res, 200, only ?? asArray(answers), stands ? this.#form.headers : undefined);
  }

  #finish(): void {
    this.#done = true;
    this.#waiting().delete(this);
    this.#owner.context.lingering.delete(this);
    this.#stream?.end();
    if (this.#number !== 0) this.#owner.closeStream(this.#number);
  }

  #closed(): void {
    if (this.#done || this.#number !== 0) return;
    this.#lost = true;
    this.#waiting().delete(this);
    this.#owner.context.lingering.add(this);
  }

  #gone(stream: EventStream): void {
    if (this.#stream !== stream) return;
    this.#stream = undefined;
    if (!this.#done) this.#owner.context.lingering.add(this);
  }
}

function asArray(answers: readonly Buffer[]): Buffer {
  const parts = answers.flatMap((bytes, index) => [Buffer.from(index === 0 ? '[' : ','), bytes]);
  return Buffer.concat([...parts, Buffer.from(']')]);
}
