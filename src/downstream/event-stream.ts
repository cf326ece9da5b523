import type { ServerResponse } from 'node:http';
import { KEEP_ALIVE_COMMENT } from '../wire/sse-writer.js';
import type { DueList } from './due-list.js';

/** Something that is told when its time has come. */
export interface Due {
  due(): void;
}

/** What an agent may leave unread before its stream is cut. */
const MAX_QUEUED_BYTES = 4 * 1024 * 1024;
/** The same where everything it asked for comes on one stream. */
export const MAX_QUEUED_ANSWER_BYTES = 64 * 1024 * 1024;

const HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  // Proxies that buffer would hold back what must arrive at once.
  'X-Accel-Buffering': 'no',
};

/** One open event stream to an agent: bounded, and kept alive by comments. */
export class EventStream implements Due {
  readonly #res: ServerResponse;
  readonly #keepAlive: DueList<Due>;
  readonly #onGone: () => void;
  #open = true;

  /**
   * Sends the headers and `opening` at once. `onGone` is called once if the agent goes, or reads too slowly; not after
   * `end()`.
   */
  constructor(
    res: ServerResponse,
    keepAlive: DueList<Due>,
    onGone: () => void,
    opening: Buffer = KEEP_ALIVE_COMMENT,
    headers: Readonly<Record<string, string>> = {},
  ) {
    this.#res = res;
    this.#keepAlive = keepAlive;
    this.#onGone = onGone;
    res.writeHead(200, { ...HEADERS, ...headers });
    res.write(opening);
    res.on('close', () => this.#gone());
    keepAlive.add(this);
  }

  /** True when a frame written now is sent. An agent that has left too much unread is gone from here on. */
  ready(maxQueuedBytes = MAX_QUEUED_BYTES): boolean {
    if (this.#open && this.#res.writableLength > maxQueuedBytes) {
      this.#gone();
      this.#res.destroy();
    }
    return this.#open;
  }

  /** Writes one frame, or none if the stream is not `ready()`. */
  write(frame: Buffer, maxQueuedBytes = MAX_QUEUED_BYTES): boolean {
    if (!this.ready(maxQueuedBytes)) return false;
    this.#res.write(frame);
    return true;
  }

  due(): void {
    if (this.write(KEEP_ALIVE_COMMENT)) this.#keepAlive.add(this);
  }

  /** Ends the stream in good order. */
  end(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#keepAlive.delete(this);
    this.#res.end();
  }

  #gone(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#keepAlive.delete(this);
    this.#onGone();
  }
}

/** A stream of nothing: the answer to a request that was taken back. */
export function endEmptyStream(res: ServerResponse): void {
  res.writeHead(200, HEADERS);
  res.end();
}
