import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A JSON-RPC message as a test reads it; what is sent is always text. */
export interface Wire {
  readonly jsonrpc: '2.0';
  readonly id?: string | number;
  readonly method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  readonly params?: any;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  readonly result?: any;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** Thrown by a handler: a JSON-RPC error with these members. */
export class Refusal extends Error {
  readonly code: number;
  readonly data: unknown;
  /** HTTP status that it comes with. */
  readonly status: number;

  constructor(code: number, message: string, data?: unknown, status = 200) {
    super(message);
    this.code = code;
    this.data = data;
    this.status = status;
  }
}

/** One request under way at the server. */
export interface ServerCall {
  readonly message: Wire;
  /** The body as it came. */
  readonly raw: string;
  readonly headers: IncomingHttpHeaders;
  readonly session: string | undefined;
  /** Aborted when the request's connection is gone. */
  readonly gone: AbortSignal;
  /** Sends a message on this request's own stream. */
  notify(method: string, params?: unknown): void;
  /** Asks the agent on this request's own stream. */
  ask(method: string, params?: unknown): Promise<Wire>;
  /** Sends raw text as one event on this request's own stream. */
  emit(text: string): void;
  /** Breaks this request's connection. */
  cut(): void;
}

/** JSON text of a result. */
export type ServerHandler = (call: ServerCall) => string | Promise<string>;

export interface McpServerOptions {
  readonly on?: Readonly<Record<string, ServerHandler>>;
  /** Capabilities announced; tools, prompts and resources with list changes by default. */
  readonly capabilities?: object;
  /** False: no session ids. */
  readonly sessions?: boolean;
  /** False: 405 on GET. */
  readonly stream?: boolean;
  /** Awaited before `initialize` is answered; a Refusal that it throws is the answer. */
  readonly greet?: () => void | Promise<void>;
  /** Answers a request in place of the server, if it returns true. */
  readonly intercept?: (request: IncomingMessage, response: ServerResponse) => boolean;
}

const ALL = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  logging: {},
  completions: {},
};

/** A Streamable HTTP server of the initialize era on loopback, scripted by a test; it speaks bytes, no SDK. */
export class McpServer {
  readonly on: Record<string, ServerHandler>;
  /** Times each JSON-RPC method was received. */
  readonly counts = new Map<string, number>();
  /** Notifications received, in order. */
  readonly notifications: Wire[] = [];
  readonly #options: McpServerOptions;
  readonly #sessions = new Set<string>();
  readonly #streams = new Map<ServerResponse, string | undefined>();
  readonly #asked = new Map<string, (answer: Wire) => void>();
  readonly #waiting: { readonly ready: () => boolean; readonly done: () => void }[] = [];
  readonly #http = createServer((request, response) => void this.#serve(request, response));
  #lastAsk = 0;
  /** Sessions ended by DELETE. */
  deleted = 0;
  /** Initialize params, in order. */
  readonly initialized: Wire[] = [];

  private constructor(options: McpServerOptions) {
    this.#options = options;
    this.on = { 'tools/list': () => '{"tools":[]}', ...options.on };
  }

  static async start(options: McpServerOptions = {}, port = 0): Promise<McpServer> {
    const server = new McpServer(options);
    server.#http.listen(port, '127.0.0.1');
    await once(server.#http, 'listening');
    return server;
  }

  get port(): number {
    return (this.#http.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  get openStreams(): number {
    return this.#streams.size;
  }

  get openSessions(): number {
    return this.#sessions.size;
  }

  count(method: string): number {
    return this.counts.get(method) ?? 0;
  }

  /** Sends a notification on every GET stream. */
  broadcast(method: string, params?: unknown): void {
    const text = JSON.stringify({ jsonrpc: '2.0', method, params });
    for (const stream of this.#streams.keys()) stream.write(event(text));
  }

  /** Asks on the GET streams; the first answer counts. */
  askOnStream(method: string, params?: unknown): Promise<Wire> {
    return this.#ask(method, params, (text) => {
      for (const stream of this.#streams.keys()) stream.write(event(text));
    });
  }

  /** Forgets every session, as a restart does. */
  forgetSessions(): void {
    this.#sessions.clear();
    for (const stream of this.#streams.keys()) stream.destroy();
  }

  /** Resolves once the condition holds; looked at after each message and stream that comes or goes. */
  async until(ready: () => boolean): Promise<void> {
    if (ready()) return;
    await new Promise<void>((done) => this.#waiting.push({ ready, done }));
  }

  async close(): Promise<void> {
    this.#http.closeAllConnections();
    this.#http.close();
    await once(this.#http, 'close');
  }

  #look(): void {
    for (const waiting of [...this.#waiting]) {
      if (!waiting.ready()) continue;
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
      waiting.done();
    }
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#options.intercept?.(request, response)) return;
    const session = request.headers['mcp-session-id'] as string | undefined;
    if (session !== undefined && !this.#sessions.has(session)) return void response.writeHead(404).end();
    if (request.method === 'GET') return this.#open(response, session);
    if (request.method === 'DELETE') {
      if (session !== undefined && this.#sessions.delete(session)) this.deleted++;
      response.writeHead(204).end();
      return this.#look();
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    await this.#post(Buffer.concat(chunks).toString(), request, response, session);
    this.#look();
  }

  #open(response: ServerResponse, session: string | undefined): void {
    if (this.#options.stream === false) return void response.writeHead(405).end();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    this.#streams.set(response, session);
    response.on('close', () => {
      this.#streams.delete(response);
      this.#look();
    });
    this.#look();
  }

  async #post(raw: string, request: IncomingMessage, response: ServerResponse, session: string | undefined) {
    const message = JSON.parse(raw) as Wire;
    if (message.method === undefined) {
      this.#asked.get(String(message.id))?.(message);
      return void response.writeHead(202).end();
    }
    this.counts.set(message.method, this.count(message.method) + 1);
    if (message.id === undefined) {
      this.notifications.push(message);
      return void response.writeHead(202).end();
    }
    this.#look();
    if (message.method === 'initialize') return await this.#initialize(message, response);
    await this.#answer({ message, raw, headers: request.headers, session }, response);
  }

  async #initialize(message: Wire, response: ServerResponse): Promise<void> {
    this.initialized.push(message);
    const headers: Record<string, string> = { 'content-type': 'application/json' };
    try {
      await this.#options.greet?.();
    } catch (error) {
      const body = JSON.stringify({ jsonrpc: '2.0', id: message.id, error: refusalOf(error) });
      return void response.writeHead(200, headers).end(body);
    }
    if (this.#options.sessions !== false) {
      headers['mcp-session-id'] = randomUUID();
      this.#sessions.add(headers['mcp-session-id']);
    }
    const result = {
      protocolVersion: message.params.protocolVersion,
      capabilities: this.#options.capabilities ?? ALL,
      serverInfo: { name: 'scripted', version: '1' },
    };
    response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }));
  }

  async #answer(
    call: Pick<ServerCall, 'message' | 'raw' | 'headers' | 'session'>,
    response: ServerResponse,
  ): Promise<void> {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const emit = (text: string) => {
      if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(event(text));
    };
    const handler = this.on[call.message.method as string];
    let body: string;
    let status = 200;
    try {
      if (!handler) throw new Refusal(-32601, `Method not found: ${call.message.method}`);
      const result = await handler({
        ...call,
        gone: gone.signal,
        emit,
        cut: () => response.destroy(),
        notify: (method, params) => emit(JSON.stringify({ jsonrpc: '2.0', method, params })),
        ask: (method, params) => this.#ask(method, params, emit),
      });
      body = `"result":${result}`;
    } catch (error) {
      body = `"error":${JSON.stringify(refusalOf(error))}`;
      status = (error as Partial<Refusal>).status ?? 200;
    }
    const text = `{"jsonrpc":"2.0","id":${JSON.stringify(call.message.id)},${body}}`;
    if (response.headersSent) response.end(event(text));
    else response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  }

  #ask(method: string, params: unknown, send: (text: string) => void): Promise<Wire> {
    const id = `ask-${++this.#lastAsk}`;
    const answer = new Promise<Wire>((resolve) => this.#asked.set(id, resolve));
    send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return answer;
  }
}

function refusalOf(error: unknown): object {
  const { code, message, data } = error as Refusal;
  return { code: code ?? -32603, message, data };
}

function event(text: string): string {
  return `event: message\ndata: ${text}\n\n`;
}
