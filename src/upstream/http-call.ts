import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { failedOnUsedSocket } from './connector.js';
import type { OriginPools } from './origin.js';
import { type ChunkSource, ReplyBody } from './reply-body.js';

export interface CallRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: URL;
  readonly headers: Record<string, string>;
  readonly body?: Buffer;
  /** On a socket of its own, never on a reused one. */
  readonly fresh: boolean;
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: ChunkSource;
}

/** No reply came. */
export class CallError extends Error {
  override readonly name = 'CallError';
  /** False: not a byte of the request was written. */
  readonly sent: boolean;
  /** It broke on a socket that had served earlier requests. */
  readonly onUsedSocket: boolean;
  override readonly cause: Error;

  constructor(cause: Error, sent: boolean) {
    super(cause.message);
    this.cause = cause;
    this.sent = sent;
    this.onUsedSocket = sent && failedOnUsedSocket(cause);
  }
}

/**
 * One HTTP request and its reply. `reply` rejects with CallError, or with the reason of an abort; a body breaks with
 * the raw error of the socket, or that reason. After `done` nothing of the call is left.
 */
export class HttpCall implements Dispatcher.DispatchHandler {
  readonly reply: Promise<Reply>;
  #resolve!: (reply: Reply) => void;
  #reject!: (error: Error) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #body: ReplyBody | undefined;
  #abortedWith: Error | undefined;
  #over = false;
  readonly #done: () => void;

  constructor(origins: OriginPools, request: CallRequest, done: () => void) {
    this.#done = done;
    this.reply = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const { method, url, headers, body, fresh } = request;
    const options = { method, path: url.pathname + url.search, headers, body: body ?? null };
    try {
      origins.dispatch(url.origin, options, this, fresh);
    } catch (error) {
      this.onResponseError(undefined, error as Error);
    }
  }

  /** Ends the call wherever it is. A request that waits for its socket is then never written. */
  abort(reason: Error): void {
    if (this.#over) return;
    this.#abortedWith = reason;
    if (this.#controller) this.#controller.abort(reason);
    this.#fail(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#abortedWith) controller.abort(this.#abortedWith);
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status < 200) return;
    this.#body = new ReplyBody({
      pause: () => controller.pause(),
      resume: () => controller.resume(),
      stop: () => this.abort(new Error('The body is not wanted')),
    });
    this.#resolve({ status, headers, body: this.#body });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#body?.push(chunk);
  }

  onResponseEnd(): void {
    this.#body?.end();
    this.#finish();
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#fail(error);
  }

  #fail(error: Error): void {
    if (this.#over) return;
    const aborted = error === this.#abortedWith;
    if (this.#body) this.#body.fail(error);
    else this.#reject(aborted ? error : new CallError(error, this.#controller !== undefined));
    this.#finish();
  }

  #finish(): void {
    if (this.#over) return;
    this.#over = true;
    this.#done();
  }
}
