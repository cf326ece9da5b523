/** A body that is pulled chunk by chunk. One reader, one `next` at a time. */
export interface ChunkSource {
  /** The next chunk, or undefined at the end. Rejects once with what broke the body, after the chunks before it. */
  next(): Promise<Buffer | undefined>;
  /** The reader wants no more; the body is freed. Idempotent, and harmless after the end. */
  cancel(): void;
}

/** What is waiting unread above this size makes the socket pause. */
const HIGH_WATER_BYTES = 256 * 1024;

/** How a body tells its source to slow down or stop. */
export interface BodyFlow {
  pause(): void;
  resume(): void;
  stop(): void;
}

interface Waiting {
  resolve(chunk: Buffer | undefined): void;
  reject(error: Error): void;
}

/** The response body between undici, which pushes, and its reader, who pulls. */
export class ReplyBody implements ChunkSource {
  readonly #flow: BodyFlow;
  #chunks: Buffer[] = [];
  #queuedBytes = 0;
  #paused = false;
  #over = false;
  #error: Error | undefined;
  #waiting: Waiting | undefined;

  constructor(flow: BodyFlow) {
    this.#flow = flow;
  }

  push(chunk: Buffer): void {
    if (this.#over) return;
    const waiting = this.#taken();
    if (waiting) return waiting.resolve(chunk);
    this.#chunks.push(chunk);
    this.#queuedBytes += chunk.length;
    if (this.#paused || this.#queuedBytes <= HIGH_WATER_BYTES) return;
    this.#paused = true;
    this.#flow.pause();
  }

  end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#taken()?.resolve(undefined);
  }

  fail(error: Error): void {
    if (this.#over) return;
    this.#over = true;
    const waiting = this.#taken();
    if (waiting) waiting.reject(error);
    else this.#error = error;
  }

  next(): Promise<Buffer | undefined> {
    const chunk = this.#chunks.shift();
    if (chunk) {
      this.#queuedBytes -= chunk.length;
      if (this.#paused && this.#chunks.length === 0) this.#resume();
      return Promise.resolve(chunk);
    }
    const error = this.#error;
    this.#error = undefined;
    if (error) return Promise.reject(error);
    if (this.#over) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  cancel(): void {
    this.#chunks = [];
    this.#error = undefined;
    if (this.#over) return;
    this.#over = true;
    this.#taken()?.resolve(undefined);
    this.#flow.stop();
  }

  #resume(): void {
    this.#paused = false;
    this.#flow.resume();
  }

  #taken(): Waiting | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }
}
