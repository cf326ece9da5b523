import { once } from 'node:events';
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Refusal, type Wire } from './mcp-server.js';
import { Watch } from './watch.js';

const CHILD = fileURLToPath(new URL('./pipe-child.mjs', import.meta.url));

export type ChannelKind = 'stdio' | 'sse';

/** One request under way at the server. */
export interface ChannelCall {
  readonly message: Wire;
  /** The message as it came. */
  readonly raw: string;
  /** Answers by hand, for a handler that returns nothing; `result` is JSON text. */
  answer(result: string): void;
}

/** JSON text of a result, or nothing where the call is answered by hand or never. */
export type ChannelHandler = (call: ChannelCall) => string | undefined | Promise<string | undefined>;

/** One connection of the gateway: a child, or an event stream. */
interface Peer {
  say(text: string): void;
  end(): void;
}

const CAPABILITIES = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  logging: {},
  completions: {},
  tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
};

/**
 * A server of the initialize era that has one channel for everything, scripted by a test: a child on stdio, which is a
 * mere pipe to the test, or the older HTTP+SSE. It speaks bytes.
 */
export class ChannelServer {
  readonly kind: ChannelKind;
  readonly on: Record<string, ChannelHandler>;
  /** Everything received, in order. */
  readonly received: Wire[] = [];
  readonly raw: string[] = [];
  /** Connections that ever were. */
  connections = 0;
  /** Written behind the endpoint event in the same piece; HTTP+SSE only. */
  greeting = '';
  readonly #peers = new Set<Peer>();
  readonly #watch = new Watch();
  readonly #asked = new Map<string, (answer: Wire) => void>();
  #server!: Server;
  #lastAsk = 0;

  private constructor(kind: ChannelKind, on: Readonly<Record<string, ChannelHandler>>) {
    this.kind = kind;
    this.on = {
      initialize: ({ message }) =>
        JSON.stringify({
          protocolVersion: message.params.protocolVersion,
          capabilities: CAPABILITIES,
          serverInfo: { name: 'scripted', version: '1' },
        }),
      'tools/list': () => '{"tools":[]}',
      'logging/setLevel': () => '{}',
      'resources/subscribe': () => '{}',
      'resources/unsubscribe': () => '{}',
      ...on,
    };
  }

  static async start(
    kind: ChannelKind,
    on: Readonly<Record<string, ChannelHandler>> = {},
  ): Promise<ChannelServer> {
    const server = new ChannelServer(kind, on);
    server.#server =
      kind === 'stdio'
        ? createTcp((socket) => server.#child(socket))
        : createHttp((request, response) => void server.#http(request, response));
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  /** Its entry below `mcpServers`. */
  get entry(): object {
    const { port } = this.#server.address() as AddressInfo;
    return this.kind === 'stdio'
      ? { command: process.execPath, args: [CHILD, String(port)] }
      : { url: `http://127.0.0.1:${port}/sse`, type: 'sse' };
  }

  /** Connections that stand. */
  get open(): number {
    return this.#peers.size;
  }

  of(method: string): Wire[] {
    return this.received.filter((message) => message.method === method);
  }

  count(method: string): number {
    return this.of(method).length;
  }

  /** Writes one message to every connection. */
  say(text: string): void {
    for (const peer of this.#peers) peer.say(text);
  }

  notify(method: string, params?: unknown): void {
    this.say(JSON.stringify({ jsonrpc: '2.0', method, params }));
  }

  /** Asks; resolves with the response. `id` is JSON text. */
  ask(method: string, params?: unknown, id = `"ask-${++this.#lastAsk}"`): Promise<Wire> {
    const answer = new Promise<Wire>((resolve) => this.#asked.set(id, resolve));
    const tail = params === undefined ? '' : `,"params":${JSON.stringify(params)}`;
    this.say(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}${tail}}`);
    return answer;
  }

  /** Ends every connection, as a crash does. */
  drop(): void {
    for (const peer of this.#peers) peer.end();
  }

  until(ready: () => boolean): Promise<void> {
    return this.#watch.until(ready);
  }

  async close(): Promise<void> {
    this.drop();
    this.#server.close();
    if (this.#server.listening) await once(this.#server, 'close');
  }

  #child(socket: Socket): void {
    const peer = { say: (text: string) => socket.write(`${text}\n`), end: () => socket.destroy() };
    this.#joined(peer);
    let rest = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) void this.#take(line, peer);
    });
    socket.on('error', () => {});
    socket.on('end', () => socket.end());
    socket.on('close', () => this.#left(peer));
  }

  async #http(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'GET') {
      const peer = {
        say: (text: string) => void response.write(event(text)),
        end: () => response.destroy(),
      };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`event: endpoint\ndata: /messages\n\n${this.greeting && event(this.greeting)}`);
      response.on('close', () => this.#left(peer));
      return this.#joined(peer);
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    response.writeHead(202).end();
    const newest = [...this.#peers].at(-1);
    if (newest) await this.#take(Buffer.concat(chunks).toString(), newest);
  }

  #joined(peer: Peer): void {
    this.connections++;
    this.#peers.add(peer);
    this.#watch.changed();
  }

  #left(peer: Peer): void {
    this.#peers.delete(peer);
    this.#watch.changed();
  }

  async #take(raw: string, peer: Peer): Promise<void> {
    const message = JSON.parse(raw) as Wire;
    this.received.push(message);
    this.raw.push(raw);
    if (message.method === undefined) this.#asked.get(JSON.stringify(message.id))?.(message);
    const answered =
      message.id === undefined || message.method === undefined ? undefined : this.#answer(raw, message, peer);
    this.#watch.changed();
    await answered;
  }

  async #answer(raw: string, message: Wire, peer: Peer): Promise<void> {
    const respond = (body: string) =>
      peer.say(`{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},${body}}`);
    const handler = this.on[message.method as string];
    try {
      if (!handler) throw new Refusal(-32601, `Method not found: ${message.method}`);
      const answer = (result: string) => respond(`"result":${result}`);
      const result = await handler({ message, raw, answer });
      if (result !== undefined) answer(result);
    } catch (error) {
      const { code, message: text, data } = error as Refusal;
      respond(`"error":${JSON.stringify({ code: code ?? -32603, message: text, data })}`);
    }
  }
}

/** One event; a message of several lines keeps them. */
function event(text: string): string {
  return `event: message\n${text
    .split('\n')
    .map((line) => `data: ${line}\n`)
    .join('')}\n`;
}
