import type { Readable, Writable } from 'node:stream';
import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { EventSink } from '../pipeline/events.js';
import { ANONYMOUS, type Caller } from '../pipeline/exchange.js';
import { frameLine, LineReader } from '../wire/lines.js';
import { MessageError } from '../wire/message.js';
import type { Backend } from './backend.js';
import { errorBytes, failureOf } from './errors.js';
import { Pipe } from './pipe.js';

export interface StdioOptions {
  /** The one server that this agent gets. */
  readonly serverId: string;
  /** One message from the agent. */
  readonly maxRequestBytes: number;
  /** How long what is under way may take after the agent has closed its side. */
  readonly finishMs: number;
  readonly clock: Clock;
  readonly emit: EventSink;
  /** On whose behalf the agent asks; anonymous by default. */
  readonly caller?: Caller;
}

export interface StdioService {
  /** Settles when the agent is gone and nothing of it is left; the streams themselves stay the owner's. */
  readonly done: Promise<void>;
  /** Takes nothing more, and ends when what is under way is answered, at the latest at this instant. */
  drain(deadlineAt: number): Promise<void>;
  /** Ends now. */
  close(): Promise<void>;
}

/** What an agent may leave unread before it is told nothing but answers. */
const MAX_QUEUED_BYTES = 4 * 1024 * 1024;

/**
 * Serves one agent of either era on a pair of streams, one message a line. Nothing else is ever written.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio
 */
export function serveStdio(
  options: StdioOptions,
  backend: Backend,
  stdin: Readable,
  stdout: Writable,
): StdioService {
  const agent = new StdioAgent(options, backend, stdin, stdout);
  return { done: agent.done, drain: (deadlineAt) => agent.drain(deadlineAt), close: () => agent.close() };
}

class StdioAgent {
  readonly done: Promise<void>;
  readonly #options: StdioOptions;
  readonly #stdin: Readable;
  readonly #stdout: Writable;
  readonly #pipe: Pipe;
  readonly #lines: LineReader;
  #resolve: () => void = () => {};
  #over = false;
  #finishing = false;

  constructor(options: StdioOptions, backend: Backend, stdin: Readable, stdout: Writable) {
    this.#options = options;
    this.#stdin = stdin;
    this.#stdout = stdout;
    this.done = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    const outlet = {
      send: (bytes: Buffer) => this.#send(bytes),
      answer: (bytes: Buffer) => this.#write(bytes),
    };
    const { serverId, emit } = options;
    this.#pipe = new Pipe({ serverId, backend, emit, modern: true }, outlet);
    this.#lines = new LineReader(options.maxRequestBytes, (line) => this.#line(line));
    stdin.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onEnd).on('close', this.#onEnd);
    stdout.on('error', this.#onGone).on('close', this.#onGone).on('drain', this.#onDrain);
  }

  drain(deadlineAt: number): Promise<void> {
    // An agent that closed its side and is not willing to wait any more.
    if (this.#finishing) return this.close();
    this.#finish(deadlineAt);
    return this.done;
  }

  close(): Promise<void> {
    this.#end(new GatewayError('shutting_down', 'The gateway is shutting down'));
    return this.done;
  }

  readonly #onData = (chunk: Buffer): void => {
    try {
      this.#lines.push(chunk);
    } catch (error) {
      // The end of that line is not looked for, so whatever follows has no beginning.
      this.#write(errorBytes(failureOf(error, this.#options.serverId), ''));
      this.#onEnd();
    }
    if (this.#stdout.writableNeedDrain) this.#stdin.pause();
  };

  readonly #onDrain = (): void => {
    if (!this.#finishing) this.#stdin.resume();
  };

  readonly #onEnd = (): void => {
    if (!this.#finishing) this.#lines.end();
    this.#finish(this.#options.clock.now() + this.#options.finishMs);
  };

  /** The agent reads no more: there is nobody to answer. */
  readonly #onGone = (): void => this.#end();

  #line(line: Buffer): void {
    if (line.every(isSpace)) return;
    try {
      for (const message of this.#pipe.read(line))
        this.#pipe.take(message, this.#options.caller ?? ANONYMOUS);
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      this.#write(errorBytes(failureOf(error, this.#options.serverId), error.id));
    }
  }

  #send(bytes: Buffer): boolean {
    return this.#stdout.writableLength <= MAX_QUEUED_BYTES && this.#write(bytes);
  }

  #write(bytes: Buffer): boolean {
    if (this.#over || !this.#stdout.writable) return false;
    this.#stdout.write(frameLine(bytes));
    return true;
  }

  #finish(deadlineAt: number): void {
    if (this.#finishing || this.#over) return;
    this.#finishing = true;
    this.#stdin.pause();
    this.#pipe.drain();
    const { clock } = this.#options;
    const why = new GatewayError('shutting_down', 'The gateway is shutting down');
    const timer = clock.after(Math.max(0, deadlineAt - clock.now()), () => this.#end(why));
    void this.#pipe.idle().then(() => {
      timer.cancel();
      this.#end();
    });
  }

  #end(why?: GatewayError): void {
    if (this.#over) return;
    this.#pipe.end(why);
    this.#over = true;
    this.#stdin.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onEnd).pause();
    this.#stdout.off('drain', this.#onDrain).off('close', this.#onGone);
    this.#flush();
  }

  /** Done when what was written has left; an agent that does not read is not waited for beyond a moment. */
  #flush(): void {
    if (this.#stdout.writableLength === 0 || !this.#stdout.writable) return this.#resolve();
    const timer = this.#options.clock.after(this.#options.finishMs, this.#resolve);
    this.#stdout.write('', () => {
      timer.cancel();
      this.#resolve();
    });
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d;
}
