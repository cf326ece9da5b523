import { type Gateway, startGateway } from '../../src/app/gateway.js';
import type { GatewayConfig, ServerConfig } from '../../src/config/types.js';
import type { GatewayEvent } from '../../src/pipeline/events.js';
import { type Incoming, open, type Sent } from './agent-http.js';
import { FakeClock } from './fake-clock.js';
import { McpServer, type McpServerOptions, type Wire } from './mcp-server.js';

/** A configuration with these servers, and time limits that a test does not reach by accident. */
export function gatewayConfig(servers: readonly ServerConfig[]): GatewayConfig {
  return { ...CONFIG, servers };
}

const CONFIG: GatewayConfig = {
  host: '127.0.0.1',
  port: 0,
  servers: [],
  disabled: [],
  allowedHosts: [],
  allowedOrigins: [],
  logLevel: 'silent',
  toolListTtlMs: 60_000,
  maxTtlMs: 900_000,
  cacheMaxBytes: 1_000_000,
  cacheMaxEntries: 100,
  maxConnections: 100,
  connectionIdleMs: 100_000_000,
  maxSessions: 100,
  sessionIdleMs: 1_800_000,
  keepAliveMs: 15_000,
  resumeMs: 60_000,
  replayMaxBytes: 1_000_000,
  hints: 'modern',
  parkMs: 300_000,
  maxParkedCalls: 100,
  maxRequestBytes: 1_000_000,
  maxAnswerBytes: 20_000_000,
  shutdownMs: 10_000,
};

/** A gateway and a server behind it, with time that stands still. */
export interface Bench {
  readonly gateway: Gateway;
  readonly server: McpServer;
  readonly clock: FakeClock;
  readonly events: GatewayEvent[];
  /** URL of a path at the gateway. */
  url(path?: string): string;
  /** Resolves when such an event was emitted. */
  event<T extends GatewayEvent['type']>(type: T): Promise<void>;
}

export interface BenchOptions {
  readonly config?: Partial<GatewayConfig>;
  readonly server?: McpServerOptions;
  /** Ids of the server; `one` by default. */
  readonly ids?: readonly string[];
}

/** Runs `test` with a gateway of its own, and ends everything afterwards. */
export function withGateway(
  options: BenchOptions,
  test: (bench: Bench) => Promise<void>,
): () => Promise<void> {
  return async () => {
    const server = await McpServer.start(options.server);
    const clock = new FakeClock();
    const events: GatewayEvent[] = [];
    const waiting: { readonly type: string; readonly done: () => void }[] = [];
    const emit = (event: GatewayEvent) => {
      events.push(event);
      for (const { type, done } of waiting) if (type === event.type) done();
    };
    const servers = (options.ids ?? ['one']).map((id) => serverConfig(id, server.url));
    const gateway = await startGateway({ ...gatewayConfig(servers), ...options.config }, { clock, emit });
    try {
      await test({
        gateway,
        server,
        clock,
        events,
        url: (path = '/mcp') => gateway.url + path,
        event: (type) =>
          events.some((event) => event.type === type)
            ? Promise.resolve()
            : new Promise((done) => waiting.push({ type, done })),
      });
    } finally {
      await gateway.close();
      await server.close();
    }
  };
}

export function serverConfig(id: string, url: string): ServerConfig {
  return {
    id,
    target: { kind: 'remote', url, transport: 'http', headers: {}, forwardAuthorization: true },
    isolate: 'auto',
    era: 'auto',
    toolListTtlMs: undefined,
    sharePublic: undefined,
    connectTimeoutMs: 1_000_000_000,
    requestTimeoutMs: 1_000_000_000,
    maxRequestTimeoutMs: 1_000_000_000,
    maxConnections: 100,
  };
}

export const POST_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};

export interface TestAgentOptions {
  readonly revision?: string;
  readonly capabilities?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An agent of the initialize era that sends what a test says, byte for byte. */
export class TestAgent {
  readonly url: string;
  readonly headers: Record<string, string>;

  constructor(url: string, headers: Readonly<Record<string, string>>) {
    this.url = url;
    this.headers = { ...headers };
  }

  static async connect(url: string, options: TestAgentOptions = {}): Promise<TestAgent> {
    const agent = new TestAgent(url, { ...options.headers });
    const answer = await agent.open(initializeText(options));
    await answer.text();
    const id = answer.headers['mcp-session-id'];
    if (typeof id !== 'string') throw new Error(`No session: ${answer.status} ${await answer.text()}`);
    agent.headers['mcp-session-id'] = id;
    await agent.post('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    return agent;
  }

  get session(): string {
    return this.headers['mcp-session-id'] ?? '';
  }

  /** POSTs a text and resolves when the head of the answer is there. */
  open(body: string, headers: Readonly<Record<string, string>> = {}): Promise<Incoming> {
    return open(this.url, {
      method: 'POST',
      headers: { ...POST_HEADERS, ...this.headers, ...headers },
      body,
    });
  }

  /** POSTs a text and reads its answer to the end. */
  async post(
    body: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<{ status: number; text: string }> {
    const answer = await this.open(body, headers);
    return { status: answer.status, text: await answer.text() };
  }

  /** Calls a tool; `id` is JSON text. */
  call(name: string, id = '1', more = ''): Promise<Incoming> {
    return this.open(callText(name, id, more));
  }

  /** Opens the general stream, or one that `lastEventId` is from. */
  listen(lastEventId?: string): Promise<Incoming> {
    const resume: Record<string, string> = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
    return this.send({ headers: { accept: 'text/event-stream', ...resume } });
  }

  send({ method = 'GET', headers = {}, ...rest }: Sent): Promise<Incoming> {
    return open(this.url, { method, headers: { ...this.headers, ...headers }, ...rest });
  }
}

export function initializeText(options: TestAgentOptions = {}, id = '0'): string {
  const params = {
    protocolVersion: options.revision ?? '2025-11-25',
    capabilities: options.capabilities ?? {},
    clientInfo: { name: 'test', version: '1' },
  };
  return `{"jsonrpc":"2.0","id":${id},"method":"initialize","params":${JSON.stringify(params)}}`;
}

export function callText(name: string, id = '1', more = ''): string {
  return `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":${JSON.stringify(name)}${more}}}`;
}

export function notificationText(method: string, params: object = {}): string {
  return JSON.stringify({ jsonrpc: '2.0', method, params });
}

/** A promise and what settles it. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let opener = () => {};
  const opened = new Promise<void>((resolve) => {
    opener = resolve;
  });
  return { opened, open: () => opener() };
}

/** The name of the tool that a call is for. */
export function toolOf(message: Wire): string {
  return String(message.params?.name);
}

/** The gateway's own code in an error answer. */
export function codeOf(answer: Pick<Wire, 'error'> | undefined): string | undefined {
  return (answer?.error?.data as { readonly code?: string } | undefined)?.code;
}
