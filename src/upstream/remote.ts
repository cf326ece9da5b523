import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { Random } from '../base/random.js';
import type { EventSink } from '../pipeline/events.js';
import type { Message } from '../wire/message.js';
import { HttpLink } from './http.js';
import { standingHeaders } from './http-headers.js';
import type { Link, LinkEvents } from './link.js';
import type { OriginPools } from './origin.js';
import { RemotePeer } from './peer.js';
import { openSsePair } from './sse-pair.js';
import type { TransportMemory } from './transport-memory.js';

export interface RemoteServer {
  readonly id: string;
  readonly target: {
    readonly url: string;
    readonly transport: 'auto' | 'http' | 'sse';
    readonly headers: Readonly<Record<string, string>>;
  };
}

export interface RemoteCredential {
  /** Sent as a bearer token with every request, in place of a configured Authorization header. */
  readonly token?: string | undefined;
}

export interface RemoteOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly emit: EventSink;
  readonly origins: OriginPools;
  readonly transports: TransportMemory;
  /** One message from the server. */
  readonly maxAnswerBytes: number;
  /** Until an HTTP+SSE server has named its endpoint, and until a server has accepted a message that is no request. */
  readonly connectTimeoutMs: number;
  /** Ends the opening. */
  readonly signal?: AbortSignal | undefined;
}

/** Statuses by which a server without Streamable HTTP answers a POST. */
const OLDER = new Set([400, 404, 405]);

/**
 * A link to a remote server. Streamable HTTP opens without a word to the server; HTTP+SSE when the endpoint is known.
 * `auto` decides with the answer to `initialize`: a server that refuses it with 400, 404 or 405 and has an event stream
 * that names an endpoint is an older one. Rejects with a GatewayError.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#backwards-compatibility
 */
export async function openRemote(
  server: RemoteServer,
  credential: RemoteCredential,
  events: LinkEvents,
  options: RemoteOptions,
): Promise<Link> {
  const remote = new Remote(server, credential, events, options);
  if (server.target.transport === 'http') return remote.http();
  if (server.target.transport === 'sse') return remote.ssePair(options.signal);
  const known = remote.recall();
  if (known === 'http') return remote.http();
  return (known === 'sse' && (await remote.rememberedPair())) || new AutoLink(remote);
}

/** How to open either transport to one server. */
class Remote {
  readonly #events: LinkEvents;
  readonly #server: RemoteServer;
  readonly #options: RemoteOptions;
  readonly #newPeer: () => RemotePeer;

  constructor(
    server: RemoteServer,
    credential: RemoteCredential,
    events: LinkEvents,
    options: RemoteOptions,
  ) {
    const url = new URL(server.target.url);
    const standing = standingHeaders(server.id, server.target.headers, credential.token, url);
    this.#events = events;
    this.#server = server;
    this.#options = options;
    this.#newPeer = () => new RemotePeer(server.id, url, standing, options.clock, options.origins);
  }

  http(
    takeOver?: (message: Message, status: number, signal: AbortSignal | undefined) => Promise<boolean>,
  ): Link {
    const { clock, random, emit, maxAnswerBytes, connectTimeoutMs } = this.#options;
    return new HttpLink({
      peer: this.#newPeer(),
      events: this.#events,
      clock,
      random,
      emit,
      maxAnswerBytes,
      acceptTimeoutMs: connectTimeoutMs,
      ...(takeOver ? { takeOver } : {}),
    });
  }

  ssePair(signal: AbortSignal | undefined): Promise<Link> {
    const { emit, maxAnswerBytes, connectTimeoutMs } = this.#options;
    return openSsePair(
      { peer: this.#newPeer(), events: this.#events, emit, maxAnswerBytes, connectTimeoutMs },
      signal,
    );
  }

  recall(): 'http' | 'sse' | undefined {
    return this.#options.transports.recall(this.#server.id, this.#server.target.url);
  }

  remember(transport: 'http' | 'sse'): void {
    this.#options.transports.remember(this.#server.id, this.#server.target.url, transport);
  }

  /** The pair that worked before; undefined when the server no longer has it, which is then forgotten. */
  async rememberedPair(): Promise<Link | undefined> {
    try {
      return await this.ssePair(this.#options.signal);
    } catch (error) {
      if (!(error instanceof GatewayError) || !isOtherTransport(error)) throw error;
      this.#options.transports.forget(this.#server.id, this.#server.target.url);
      return undefined;
    }
  }
}

/** Whether the answer to the GET says that there is no event stream, rather than that something is down. */
function isOtherTransport(error: GatewayError): boolean {
  const { status } = error.details;
  return error.code === 'server_protocol' || (status !== undefined && OLDER.has(status));
}

/** Streamable HTTP until the answer to `initialize` says otherwise. */
class AutoLink implements Link {
  readonly #remote: Remote;
  readonly #http: Link;
  #pair: Link | undefined;
  #closed = false;

  constructor(remote: Remote) {
    this.#remote = remote;
    this.#http = remote.http((message, status, signal) => this.#takeOver(message, status, signal));
  }

  get kind(): Link['kind'] {
    return this.#current.kind;
  }

  async send(
    message: Message,
    signal?: AbortSignal,
    headers?: Readonly<Record<string, string>>,
  ): Promise<void> {
    await this.#current.send(message, signal, headers);
    if (message.method === 'initialize' && !this.#pair) this.#remote.remember('http');
  }

  established(revision: string): void {
    this.#current.established(revision);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#http.close(), this.#pair?.close()]);
  }

  get #current(): Link {
    return this.#pair ?? this.#http;
  }

  async #takeOver(message: Message, status: number, signal: AbortSignal | undefined): Promise<boolean> {
    if (message.method !== 'initialize' || !OLDER.has(status)) return false;
    const pair = await this.#remote.ssePair(signal).catch(() => undefined);
    if (!pair) return false;
    if (this.#closed) {
      await pair.close();
      return false;
    }
    this.#pair = pair;
    this.#remote.remember('sse');
    await pair.send(message, signal);
    return true;
  }
}
