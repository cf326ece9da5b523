import type { TestContext } from 'node:test';
import { GatewayError } from '../../src/base/errors.js';
import type { GatewayEvent } from '../../src/pipeline/events.js';
import type { Link } from '../../src/upstream/link.js';
import { OriginPools } from '../../src/upstream/origin.js';
import { openRemote } from '../../src/upstream/remote.js';
import { TransportMemory } from '../../src/upstream/transport-memory.js';
import { type Message, readMessage } from '../../src/wire/message.js';
import { FakeClock } from './fake-clock.js';
import { HttpUpstream } from './http-upstream.js';
import { Watch } from './watch.js';

export interface Delivered {
  readonly message: Message;
  readonly origin: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  readonly json: any;
}

/** The owner of a remote link, as a test plays it: everything that the link said, in order. */
export class RemoteOwner {
  readonly clock = new FakeClock();
  readonly origins: OriginPools;
  readonly transports: TransportMemory;
  readonly delivered: Delivered[] = [];
  readonly noticed: GatewayEvent[] = [];
  readonly losses: GatewayError[] = [];
  streamLosses = 0;
  readonly #watch = new Watch();
  readonly #links: Link[] = [];

  constructor(t: TestContext) {
    this.origins = new OriginPools({ clock: this.clock, connectTimeoutMs: 10_000 });
    this.transports = new TransportMemory(this.clock);
    t.after(async () => {
      const closing = this.#links.map((link) => link.close());
      this.clock.advance(60_000);
      await Promise.all(closing);
      await this.origins.close();
    });
  }

  async open(url: string, options: OpenOptions = {}): Promise<Link> {
    const { transport = 'http', headers = {}, token, signal, maxAnswerBytes = 1_000_000 } = options;
    const link = await openRemote(
      { id: 'far', target: { url, transport, headers } },
      { token },
      {
        message: (message, origin) => {
          this.delivered.push({ message, origin, json: JSON.parse(message.bytes.toString()) });
          this.#watch.changed();
        },
        streamLost: () => {
          this.streamLosses++;
          this.#watch.changed();
        },
        closed: (error) => {
          this.losses.push(error);
          this.#watch.changed();
        },
      },
      {
        clock: this.clock,
        random: () => 1,
        emit: (event) => {
          this.noticed.push(event);
          this.#watch.changed();
        },
        origins: this.origins,
        transports: this.transports,
        maxAnswerBytes,
        connectTimeoutMs: 5_000,
        signal,
      },
    );
    this.#links.push(link);
    return link;
  }

  /** Opens a link and initializes it; the revision is stated only where `revision` is given. */
  async connect(url: string, options: OpenOptions & { readonly revision?: string } = {}): Promise<Link> {
    const link = await this.open(url, options);
    await link.send(request(0, 'initialize', { protocolVersion: '2025-11-25' }));
    if (options.revision !== undefined) link.established(options.revision);
    return link;
  }

  until(isTrue: () => boolean): Promise<void> {
    return this.#watch.until(isTrue);
  }

  /** Resolves to the message number `n`, counted from 1. */
  async message(n: number): Promise<Delivered> {
    await this.until(() => this.delivered.length >= n);
    return this.delivered[n - 1] as Delivered;
  }
}

export interface OpenOptions {
  readonly transport?: 'auto' | 'http' | 'sse';
  readonly headers?: Readonly<Record<string, string>>;
  readonly token?: string;
  readonly signal?: AbortSignal;
  readonly maxAnswerBytes?: number;
}

export function request(id: number | string, method: string, params?: object): Message {
  return readMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params })));
}

export function notice(method: string): Message {
  return readMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', method })));
}

export function result(id: number | string, value: object = {}): object {
  return { jsonrpc: '2.0', id, result: value };
}

export interface Scene {
  readonly upstream: HttpUpstream;
  readonly owner: RemoteOwner;
}

/** A server and the owner of links to it, both ended with the test. */
export async function scene(t: TestContext, host?: string): Promise<Scene> {
  const upstream = await HttpUpstream.start(host);
  const owner = new RemoteOwner(t);
  t.after(() => upstream.stop());
  return { upstream, owner };
}

/** Waits for a rejection and hands out its GatewayError. */
export async function refusalOf(sent: Promise<unknown>): Promise<GatewayError> {
  const outcome = await sent.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (outcome instanceof GatewayError) return outcome;
  throw new Error(`expected a GatewayError, got ${String(outcome)}`);
}

/** Until the client's sockets have noticed that their responses are over, so that they can be used again. */
export async function socketsIdle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}
