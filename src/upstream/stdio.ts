import type { Clock, Timer } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { EventSink } from '../pipeline/events.js';
import { frameLine, LineReader } from '../wire/lines.js';
import { type Message, MessageError, readMessage } from '../wire/message.js';
import { type Child, type ChildRegistry, type EndGraces, startChild } from './child.js';
import type { Link, LinkEvents } from './link.js';
import { childEnvironment } from './stdio-env.js';
import { type Exit, howItEnded, spawnFailure, unavailable } from './stdio-failure.js';
import { ChildInput } from './stdio-input.js';
import { StderrLog } from './stdio-stderr.js';
import { type TextReader, textReader } from './stdio-text.js';

/** What of a server's configuration a child is made of. */
export interface StdioServer {
  readonly id: string;
  readonly target: {
    readonly command: string;
    readonly args: readonly string[];
    readonly env: Readonly<Record<string, string>>;
    readonly cwd: string | undefined;
  };
}

/** Graces are 2000 and 3000 where absent. */
export interface StdioOptions extends Partial<EndGraces> {
  /** One message from the child; also what may wait for a child that does not read. */
  readonly maxLineBytes: number;
  readonly emit: EventSink;
  readonly clock: Clock;
  /** The gateway's own environment, of which a child gets a short allow-list. */
  readonly env: NodeJS.ProcessEnv;
  readonly children: ChildRegistry;
  /** How long a child that ended, or shut one of its pipes, is still read; 1000 where absent. */
  readonly lastWordsMs?: number;
}

/** As much of a noisy line as an event shows, in characters, and as is looked at for it. */
const SAMPLE_CHARS = 200;
const SAMPLE_BYTES = 4096;

/**
 * Starts a server as a child and speaks with it over its pipes, one message a line. Rejects with GatewayError
 * `server_unavailable` when it cannot be started.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio
 */
export async function openStdio(
  server: StdioServer,
  events: LinkEvents,
  options: StdioOptions,
): Promise<Link> {
  const { command, args, cwd } = server.target;
  const env = childEnvironment(options.env, server.target.env);
  let child: Child;
  try {
    child = await startChild({ command, args, env, cwd }, options.children, options.clock);
  } catch (error) {
    throw await spawnFailure(server.id, command, cwd, error);
  }
  return new StdioLink(server, child, events, options);
}

class StdioLink implements Link {
  readonly kind = 'stdio';
  readonly #serverId: string;
  readonly #child: Child;
  readonly #events: LinkEvents;
  readonly #options: StdioOptions;
  readonly #graces: EndGraces;
  readonly #readText: TextReader;
  readonly #lines: LineReader;
  readonly #stderr: StderrLog;
  readonly #input: ChildInput;
  #noise = 0;
  /** Why nothing goes through any more. */
  #stopped: GatewayError | undefined;
  /** Runs while the child is known to go, and its last output is awaited. */
  #lastWords: Timer | undefined;
  #ending: Promise<void> | undefined;

  constructor(server: StdioServer, child: Child, events: LinkEvents, options: StdioOptions) {
    this.#serverId = server.id;
    this.#child = child;
    this.#events = events;
    this.#options = options;
    this.#graces = { closeGraceMs: options.closeGraceMs ?? 2000, termGraceMs: options.termGraceMs ?? 3000 };
    this.#readText = textReader(server.target.env);
    this.#lines = new LineReader(options.maxLineBytes, (line) => this.#take(line));
    this.#stderr = new StderrLog(this.#readText, (line) => this.#reportStderr(line), options.clock);
    this.#input = new ChildInput(server.id, child.process.stdin, options.maxLineBytes, () =>
      this.#pipeEnded('closed its input'),
    );
    this.#listen();
  }

  send(message: Message, signal?: AbortSignal): Promise<void> {
    if (this.#stopped) return Promise.reject(this.#stopped);
    return this.#input.write(frameLine(message.bytes), signal);
  }

  established(): void {
    // A child's pipes carry everything from the start, whatever the revision.
  }

  close(): Promise<void> {
    this.#stopped ??= unavailable(this.#serverId, 'was closed');
    return this.#end();
  }

  #listen(): void {
    const { stdout, stderr } = this.#child.process;
    stdout.on('data', (chunk: Buffer) => this.#read(() => this.#lines.push(chunk)));
    stdout.once('end', () => this.#stdoutEnded());
    stderr.on('data', (chunk: Buffer) => this.#stderr.push(chunk));
    stderr.once('close', () => this.#stderr.end());
    // A broken pipe ends like any other: with 'end', 'close' or the child's exit.
    stdout.on('error', () => {});
    stderr.on('error', () => {});
    this.#child.process.once('exit', (code, signal) => this.#exited({ code, signal }));
  }

  #read(work: () => void): void {
    if (this.#stopped) return;
    try {
      work();
    } catch (error) {
      if (!(error instanceof GatewayError && error.code === 'too_large')) throw error;
      const limit = `sent a line above the limit of ${this.#options.maxLineBytes} bytes`;
      const details = { serverId: this.#serverId };
      this.#fail(new GatewayError('too_large', `Server "${this.#serverId}" ${limit}`, details));
      this.#child.process.stdout.destroy();
    }
  }

  #take(line: Buffer): void {
    if (this.#stopped || isBlank(line)) return;
    let message: Message;
    try {
      message = readMessage(line);
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      this.#reportNoise(line);
      return;
    }
    this.#events.message(message, undefined);
  }

  /** Reports the 1st, 10th, 100th … line of noise. */
  #reportNoise(line: Buffer): void {
    this.#noise++;
    if (!/^10*$/.test(String(this.#noise))) return;
    const sample = this.#readText(line.subarray(0, SAMPLE_BYTES)).slice(0, SAMPLE_CHARS);
    this.#options.emit({ type: 'server_noise', serverId: this.#serverId, sample, total: this.#noise });
  }

  #reportStderr(line: string): void {
    this.#options.emit({ type: 'server_stderr', serverId: this.#serverId, line });
  }

  #stdoutEnded(): void {
    this.#read(() => this.#lines.end());
    this.#pipeEnded('closed its output');
  }

  /** Most often a part of the child's exit, which then is the better reason. */
  #pipeEnded(what: string): void {
    if (!this.#lastWords) this.#expectEnd(what);
  }

  #exited(exit: Exit): void {
    const how = howItEnded(exit);
    // What it wrote before is still in the pipes; a descendant that holds them open is not waited for.
    this.#expectEnd(how);
    this.#child.process.once('close', () => this.#fail(this.#lastError(how)));
  }

  #expectEnd(what: string): void {
    if (this.#stopped) return;
    this.#lastWords?.cancel();
    const limitMs = this.#options.lastWordsMs ?? 1000;
    this.#lastWords = this.#options.clock.after(limitMs, () => this.#fail(this.#lastError(what)));
  }

  #lastError(what: string): GatewayError {
    this.#stderr.end();
    return unavailable(this.#serverId, what, this.#stderr.tail());
  }

  #fail(error: GatewayError): void {
    if (this.#stopped) return;
    this.#stopped = error;
    this.#input.fail(error);
    void this.#end();
    this.#events.closed(error);
  }

  #end(): Promise<void> {
    this.#ending ??= this.#endChild();
    return this.#ending;
  }

  async #endChild(): Promise<void> {
    this.#lastWords?.cancel();
    this.#input.end();
    await this.#child.end(this.#graces);
    this.#input.fail(unavailable(this.#serverId, 'was closed'));
    const { stdin, stdout, stderr } = this.#child.process;
    for (const pipe of [stdin, stdout, stderr]) pipe.destroy();
  }
}

function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}
