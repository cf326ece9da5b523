import type { Writable } from 'node:stream';
import { GatewayError } from '../base/errors.js';

/** Withdrawn lines that may stay in the queue; more are cleared away when they are half of it. */
const MAX_WITHDRAWN = 32;

/** One line that waits to be written, and the caller who waits for it. */
interface Line {
  readonly bytes: Buffer;
  /** Its caller waits no longer. */
  withdrawn: boolean;
  readonly settle: (error?: GatewayError) => void;
}

/**
 * A child's stdin. One line is written at a time: when the pipe breaks, a line whose write failed was never read in
 * whole, and those behind it were not begun, so that none of them ran.
 */
export class ChildInput {
  readonly #serverId: string;
  readonly #stream: Writable;
  readonly #maxQueuedBytes: number;
  readonly #onBroken: () => void;
  /** A queue as two stacks, in constant time however long: `#front` is popped, `#back` pushed. */
  #front: Line[] = [];
  #back: Line[] = [];
  #writing: Line | undefined;
  #queuedBytes = 0;
  #withdrawn = 0;
  #broken = false;
  #ending = false;
  #failure: GatewayError | undefined;

  /** `onBroken` is called once when the pipe takes nothing more; `fail` then settles those who wait. */
  constructor(serverId: string, stream: Writable, maxQueuedBytes: number, onBroken: () => void) {
    this.#serverId = serverId;
    this.#stream = stream;
    this.#maxQueuedBytes = maxQueuedBytes;
    this.#onBroken = onBroken;
    stream.on('error', () => this.#break());
  }

  /**
   * Resolves when the system has taken the line. Rejects with `at_capacity` while more than a queue's worth waits for
   * a child that does not read, with `cancelled` on abort, else with what `fail` is given.
   */
  write(bytes: Buffer, signal?: AbortSignal): Promise<void> {
    const refusal = this.#refusal(bytes, signal);
    if (refusal) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      const line: Line = {
        bytes,
        withdrawn: false,
        settle: (error) => {
          signal?.removeEventListener('abort', withdraw);
          if (error) reject(error);
          else resolve();
        },
      };
      const withdraw = (): void => this.#withdraw(line);
      signal?.addEventListener('abort', withdraw);
      this.#queuedBytes += bytes.length;
      this.#back.push(line);
      this.#pump();
    });
  }

  /** Ends the stream once everything that waits is written. */
  end(): void {
    this.#ending = true;
    this.#pump();
  }

  /** Rejects every line that waits, and every later one. Idempotent. */
  fail(error: GatewayError): void {
    this.#failure ??= error;
    this.#broken = true;
    const waiting = [this.#writing, ...this.#front.reverse(), ...this.#back];
    this.#writing = undefined;
    this.#front = [];
    this.#back = [];
    for (const line of waiting) if (line && !line.withdrawn) line.settle(this.#failure);
  }

  #refusal(bytes: Buffer, signal: AbortSignal | undefined): GatewayError | undefined {
    const details = { serverId: this.#serverId };
    if (this.#failure) return this.#failure;
    if (signal?.aborted) return this.#cancelled();
    if (this.#queuedBytes === 0 || this.#queuedBytes + bytes.length <= this.#maxQueuedBytes) return undefined;
    const why = `does not read its input: ${this.#queuedBytes} bytes wait for it already`;
    return new GatewayError('at_capacity', `Server "${this.#serverId}" ${why}`, details);
  }

  #cancelled(): GatewayError {
    const message = `The message to server "${this.#serverId}" was withdrawn`;
    return new GatewayError('cancelled', message, { serverId: this.#serverId });
  }

  /** A line that is being written stays so: half of one would spoil the next. */
  #withdraw(line: Line): void {
    line.withdrawn = true;
    line.settle(this.#cancelled());
    if (line === this.#writing) return;
    this.#queuedBytes -= line.bytes.length;
    this.#withdrawn++;
    if (this.#withdrawn > MAX_WITHDRAWN && this.#withdrawn * 2 > this.#front.length + this.#back.length)
      this.#clearWithdrawn();
  }

  #clearWithdrawn(): void {
    this.#front = this.#front.filter((line) => !line.withdrawn);
    this.#back = this.#back.filter((line) => !line.withdrawn);
    this.#withdrawn = 0;
  }

  #pump(): void {
    if (this.#writing || this.#broken) return;
    const line = this.#next();
    if (line) {
      this.#writing = line;
      this.#stream.write(line.bytes, (error) => this.#written(line, error));
    } else if (this.#ending) this.#stream.end();
  }

  #next(): Line | undefined {
    for (;;) {
      if (this.#front.length === 0) {
        this.#front = this.#back.reverse();
        this.#back = [];
      }
      const line = this.#front.pop();
      if (!line?.withdrawn) return line;
      this.#withdrawn--;
    }
  }

  #written(line: Line, error: Error | null | undefined): void {
    if (error) {
      this.#break();
      return;
    }
    this.#queuedBytes -= line.bytes.length;
    if (this.#writing !== line) return;
    this.#writing = undefined;
    if (!line.withdrawn) line.settle();
    this.#pump();
  }

  #break(): void {
    if (this.#broken) return;
    this.#broken = true;
    this.#onBroken();
  }
}
