import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Watch } from './watch.js';

/** One request that the server has read whole. */
export interface Seen {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The body as JSON; undefined where it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  readonly json: any;
  /** The client's port: the same for two requests on one socket. */
  readonly port: number;
}

/** What happens behind the last chunk. `reset`: RST; `fin`: the socket is closed, the body unfinished. */
export type Ending = 'end' | 'reset' | 'fin' | 'open';

export interface Script {
  readonly status?: number;
  readonly headers?: Record<string, string | string[]>;
  readonly chunks?: readonly (string | Buffer)[];
  readonly ending?: Ending;
}

export type Responder = Script | ((request: Seen, response: OpenResponse) => void);

/** A response that a test goes on writing. */
export class OpenResponse {
  readonly raw: ServerResponse;
  readonly #watch: Watch;
  closed = false;

  constructor(raw: ServerResponse, watch: Watch) {
    this.raw = raw;
    this.#watch = watch;
    raw.on('close', () => {
      this.closed = true;
      watch.changed();
    });
  }

  /** Answers by a script. */
  play(script: Script): void {
    const { status = 200, headers = {}, chunks = [], ending = 'end' } = script;
    if (ending === 'reset' && chunks.length === 0 && script.status === undefined) return this.reset();
    if (ending === 'fin' && chunks.length === 0 && script.status === undefined) return this.fin();
    this.raw.writeHead(status, headers);
    this.raw.flushHeaders();
    for (const chunk of chunks) this.raw.write(chunk);
    if (ending === 'end') this.raw.end();
    // The bytes before must have left, or a reset would take them along.
    else if (ending !== 'open') this.raw.write('', () => (ending === 'reset' ? this.reset() : this.fin()));
  }

  write(chunk: string | Buffer): void {
    this.raw.write(chunk);
  }

  end(): void {
    this.raw.end();
  }

  reset(): void {
    this.raw.socket?.resetAndDestroy();
  }

  fin(): void {
    this.raw.socket?.destroy();
  }

  /** Resolves when the client has let go of it. */
  async gone(): Promise<void> {
    await this.#watch.until(() => this.closed);
  }
}

export const EVENT_STREAM = { 'content-type': 'text/event-stream' };
export const JSON_BODY = { 'content-type': 'application/json' };

/** A JSON answer to the request that was sent. */
export function answering(result: object): Responder {
  return (request, response) =>
    response.play({
      headers: JSON_BODY,
      chunks: [JSON.stringify({ jsonrpc: '2.0', id: request.json.id, result })],
    });
}

/** How a server says that a session is gone. */
export type LossShape =
  | '404-json'
  | '404-text'
  | '400-no-valid-id'
  | '400-string-id'
  | '400-custom-code'
  | '410-text';

export const LOSS_SHAPES: Readonly<Record<LossShape, Script>> = {
  '404-json': loss(404, { code: -32001, message: 'Session not found' }, null),
  '404-text': { status: 404, headers: { 'content-type': 'text/plain' }, chunks: ['Not Found'] },
  '400-no-valid-id': loss(400, { code: -32000, message: 'Bad Request: No valid session ID provided' }, null),
  '400-string-id': loss(400, { code: -32600, message: 'Session not found' }, 'server-error'),
  '400-custom-code': loss(400, { code: 4711, message: 'The session has expired, please sign on' }, 1),
  '410-text': {
    status: 410,
    headers: { 'content-type': 'text/html' },
    chunks: ['<h1>could not find session</h1>'],
  },
};

function loss(status: number, error: object, id: unknown): Script {
  return { status, headers: JSON_BODY, chunks: [JSON.stringify({ jsonrpc: '2.0', id, error })] };
}

/**
 * A server on loopback that does what a test tells it, and nothing else: each request takes the next responder of its
 * verb and path, the last one again and again.
 */
export class HttpUpstream {
  readonly seen: Seen[] = [];
  readonly responses: OpenResponse[] = [];
  readonly sockets = new Set<Socket>();
  /** Ids of the sessions that live. */
  readonly sessions = new Set<string>();
  lossShape: LossShape = '404-json';
  readonly #watch = new Watch();
  readonly #responders = new Map<string, Responder[]>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('error', () => {});
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method = '', url = '', headers } = request;
        const body = Buffer.concat(chunks).toString();
        this.#take(
          { method, url, headers, body, json: parsed(body), port: request.socket.remotePort ?? 0 },
          response,
        );
      });
    });
    this.#server.keepAliveTimeout = 60_000;
    this.#server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        this.sockets.delete(socket);
        this.#watch.changed();
      });
      this.#watch.changed();
    });
  }

  static async start(host = '127.0.0.1'): Promise<HttpUpstream> {
    const upstream = new HttpUpstream();
    upstream.#server.listen(0, host);
    await once(upstream.#server, 'listening');
    return upstream;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  url(path = '/mcp'): string {
    return this.origin + path;
  }

  on(method: string, path: string, ...responders: Responder[]): this {
    this.#responders.set(`${method} ${path}`, responders);
    return this;
  }

  /** Requests of a verb, or those whose JSON-RPC method is the name given. */
  of(name: string): Seen[] {
    return this.seen.filter((request) => request.method === name || request.json?.method === name);
  }

  count(name: string): number {
    return this.of(name).length;
  }

  until(isTrue: () => boolean): Promise<void> {
    return this.#watch.until(isTrue);
  }

  /** Resolves when so many requests of the name have come. */
  async received(name: string, times = 1): Promise<Seen> {
    await this.until(() => this.count(name) >= times);
    return this.of(name)[times - 1] as Seen;
  }

  /** A server with sessions at the path: `initialize` opens one, others need one and are answered by `answer`. */
  serveSessions(path = '/mcp', answer: Responder = answering({})): this {
    const inSession = (then: Responder): Responder => {
      return (request, response) => {
        const known = this.sessions.has(String(request.headers['mcp-session-id']));
        respond(known ? then : LOSS_SHAPES[this.lossShape], request, response);
      };
    };
    this.on('POST', path, (request, response) => {
      if (request.json?.method === 'initialize') return this.#openSession(request, response);
      const isRequest = request.json?.id !== undefined && request.json?.method !== undefined;
      respond(inSession(isRequest ? answer : { status: 202 }), request, response);
    });
    this.on('GET', path, inSession({ headers: EVENT_STREAM, ending: 'open' }));
    return this.on('DELETE', path, (request, response) => {
      const ended = this.sessions.delete(String(request.headers['mcp-session-id']));
      response.play({ status: ended ? 200 : 404 });
    });
  }

  expireSessions(shape: LossShape): void {
    this.lossShape = shape;
    this.sessions.clear();
  }

  async stop(): Promise<void> {
    this.#server.close();
    for (const socket of this.sockets) socket.destroy();
    if (this.#server.listening) await once(this.#server, 'close');
  }

  #openSession(request: Seen, response: OpenResponse): void {
    const session = randomUUID();
    this.sessions.add(session);
    const result = {
      protocolVersion: request.json.params?.protocolVersion ?? '2025-11-25',
      capabilities: {},
      serverInfo: { name: 'scripted', version: '1' },
    };
    response.play({
      headers: { ...JSON_BODY, 'mcp-session-id': session },
      chunks: [JSON.stringify({ jsonrpc: '2.0', id: request.json.id, result })],
    });
  }

  #take(request: Seen, raw: ServerResponse): void {
    const response = new OpenResponse(raw, this.#watch);
    this.seen.push(request);
    this.responses.push(response);
    const path = request.url.split('?')[0];
    const responders = this.#responders.get(`${request.method} ${path}`) ?? [{ status: 404 }];
    const responder = responders.length > 1 ? responders.shift() : responders[0];
    respond(responder as Responder, request, response);
    this.#watch.changed();
  }
}

function respond(responder: Responder, request: Seen, response: OpenResponse): void {
  if (typeof responder === 'function') responder(request, response);
  else response.play(responder);
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
