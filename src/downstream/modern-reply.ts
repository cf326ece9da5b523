import type { ServerResponse } from 'node:http';
import { messageEvent } from '../wire/sse-writer.js';
import type { DueList } from './due-list.js';
import { errorBytes, type Failure } from './errors.js';
import { type Due, EventStream, MAX_QUEUED_ANSWER_BYTES } from './event-stream.js';
import type { Outlet } from './reply.js';
import { sendFailure, sendJson } from './respond.js';

export interface ModernReplyOptions {
  /** The agent takes `application/json`. */
  readonly json: boolean;
  /** The agent takes `text/event-stream`. */
  readonly events: boolean;
  readonly keepAlive: DueList<Due>;
  /** The agent closed the connection before it had its answer. */
  readonly onGone: () => void;
}

/**
 * The answer to one request of the modern era: plain JSON if the response comes first, an event stream if anything else
 * does, or if nothing comes for long. It ends with its socket, and its request with it.
 */
export class ModernReply implements Outlet, Due {
  readonly #res: ServerResponse;
  readonly #options: ModernReplyOptions;
  #stream: EventStream | undefined;
  #done = false;

  constructor(res: ServerResponse, options: ModernReplyOptions) {
    this.#res = res;
    this.#options = options;
    if (options.events) options.keepAlive.add(this);
    res.on('close', this.#closed);
  }

  send(bytes: Buffer): boolean {
    if (this.#done || !this.#options.events) return false;
    this.begin();
    return this.#stream?.write(messageEvent(bytes)) ?? false;
  }

  /** The response, whose id is the agent's. `status` counts where no stream has begun. */
  answer(bytes: Buffer, status: number): void {
    if (this.#done) return;
    if (!this.#options.json) this.begin();
    this.#finish();
    if (!this.#stream) return sendJson(this.#res, status, bytes);
    this.#stream.write(messageEvent(bytes), MAX_QUEUED_ANSWER_BYTES);
    this.#stream.end();
  }

  fail(failure: Failure, id: string): void {
    if (this.#done) return;
    if (this.#stream) return this.answer(errorBytes(failure, id), 200);
    this.#finish();
    sendFailure(this.#res, failure, id);
  }

  /** Nothing came for long: a sign of life. */
  due(): void {
    if (!this.#done) this.begin();
  }

  /** From here on it is an event stream. */
  begin(): void {
    if (this.#stream || this.#done) return;
    const { keepAlive } = this.#options;
    keepAlive.delete(this);
    this.#stream = new EventStream(this.#res, keepAlive, this.#closed);
  }

  #finish(): void {
    this.#done = true;
    this.#options.keepAlive.delete(this);
  }

  readonly #closed = (): void => {
    if (this.#done) return;
    this.#finish();
    this.#options.onGone();
  };
}
