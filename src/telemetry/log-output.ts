import type { Writable } from 'node:stream';

/** What may wait for a reader of the log, in bytes. */
const MAX_WAITING_BYTES = 1024 * 1024;

/**
 * Where log lines go. It never blocks, never throws and never keeps the process busy: lines for which a slow reader
 * leaves no room are counted and left out, and a reader that is gone ends the log for good.
 *
 * A thread of its own or a blocking write would be worse: either hangs, the one at exit and the other at once, when a
 * parent opens a pipe for stderr and never reads it.
 */
export class LogOutput {
  readonly #stream: Writable;
  readonly #maxWaitingBytes: number;
  #dropped = 0;
  #gone = false;

  constructor(stream: Writable = process.stderr, maxWaitingBytes: number = MAX_WAITING_BYTES) {
    this.#stream = stream;
    this.#maxWaitingBytes = maxWaitingBytes;
    stream.on('error', () => {
      this.#gone = true;
    });
  }

  write(line: string): void {
    if (this.#gone || this.#stream.destroyed) return;
    if (this.#stream.writableLength > this.#maxWaitingBytes) {
      this.#dropped++;
      return;
    }
    if (this.#dropped > 0) this.#stream.write(droppedLine(this.#dropped));
    this.#dropped = 0;
    this.#stream.write(line);
  }
}

function droppedLine(dropped: number): string {
  return `${JSON.stringify({ level: 'warn', dropped, msg: 'log lines were dropped: nobody read them' })}\n`;
}
