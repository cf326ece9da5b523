// Runs one scenario against a gateway of its own and prints, as one line of JSON, what was open before it and after each
// round of it. To be run with --expose-gc.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { fileURLToPath } from 'node:url';
import { type Gateway, startGateway } from '../../src/app/gateway.js';
import { parseConfig } from '../../src/config/load.js';
import { FakeClock } from './fake-clock.js';
import { McpServer } from './mcp-server.js';
import { Watch } from './watch.js';

/** What is open at one moment. */
export interface Figures {
  readonly heapBytes: number;
  readonly sockets: number;
  /** The event loop's timers and the gateway's own. */
  readonly timers: number;
  readonly children: number;
  readonly agentSessions: number;
  readonly upstreamSessions: number;
  readonly upstreamStreams: number;
  readonly connections: number;
}

export interface Report {
  /** Agents in one round. */
  readonly agents: number;
  readonly figures: readonly Figures[];
  /** Most children and upstream sessions at one time. */
  readonly peak: { readonly children: number; readonly upstreamSessions: number };
}

const SESSION_IDLE_MS = 60_000;
const CONNECTION_IDLE_MS = 60_000;
const RESUME_MS = 10_000;

const clock = new FakeClock();
const called = new Watch();
let calls = 0;
const server = await McpServer.start({
  on: {
    'tools/call': ({ message, gone }) => {
      calls++;
      called.changed();
      if (message.params.name !== 'hang') return '{"content":[]}';
      return new Promise((resolve) => gone.addEventListener('abort', () => resolve('{"content":[]}')));
    },
  },
});

async function openGateway(entry: object): Promise<Gateway> {
  const { config } = parseConfig({
    mcpServers: { one: { maxConnections: 1_000, connectTimeoutMs: 2_000_000_000, ...entry } },
    port: 0,
    maxConnections: 1_000,
    sessionIdleMs: SESSION_IDLE_MS,
    connectionIdleMs: CONNECTION_IDLE_MS,
    resumeMs: RESUME_MS,
  });
  return await startGateway(config, { clock, env: process.env });
}

/** One agent, on sockets that all agents of a round share. */
class ProbeAgent {
  readonly #gateway: Gateway;
  readonly #sockets: Agent;
  #session = '';

  constructor(gateway: Gateway, sockets: Agent) {
    this.#gateway = gateway;
    this.#sockets = sockets;
  }

  async connect(): Promise<this> {
    const params =
      '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"p","version":"1"}}';
    const response = await this.#send(
      'POST',
      `{"jsonrpc":"2.0","id":0,"method":"initialize","params":${params}}`,
    );
    this.#session = String(response.headers['mcp-session-id']);
    await this.#send('POST', '{"jsonrpc":"2.0","method":"notifications/initialized"}');
    return this;
  }

  async call(): Promise<void> {
    await this.#send('POST', '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"quick"}}');
  }

  async leave(): Promise<void> {
    await this.#send('DELETE');
  }

  /** Sends a call and resets the socket while it is under way. */
  async vanishInCall(): Promise<void> {
    const before = calls;
    const sent = this.#open('POST', false);
    sent.on('error', () => {});
    sent.on('response', (response) => response.on('error', () => {}));
    sent.end('{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hang"}}');
    await called.until(() => calls > before);
    sent.socket?.resetAndDestroy();
  }

  /** Opens the general stream and resets its socket. */
  async vanishListening(): Promise<void> {
    const sent = this.#open('GET', false);
    sent.on('error', () => {});
    sent.end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.on('error', () => {});
    sent.socket?.resetAndDestroy();
    await new Promise((resolve) => response.once('close', resolve));
  }

  async #send(method: string, body?: string): Promise<IncomingMessage> {
    const sent = this.#open(method, this.#sockets);
    sent.end(body);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.resume();
    await once(response, 'end');
    if ((response.statusCode ?? 0) > 299) throw new Error(`${method} was answered ${response.statusCode}`);
    return response;
  }

  #open(method: string, agent: Agent | false) {
    const headers = {
      'content-type': 'application/json',
      accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
      ...(this.#session ? { 'mcp-session-id': this.#session } : {}),
    };
    return httpRequest(`${this.#gateway.url}/mcp`, { method, headers, agent });
  }
}

function measured(gateway: Gateway): Figures {
  globalThis.gc?.();
  globalThis.gc?.();
  const open = process.getActiveResourcesInfo();
  return {
    heapBytes: process.memoryUsage().heapUsed,
    sockets: open.filter((kind) => kind === 'TCPSocketWrap').length,
    timers: open.filter((kind) => kind === 'Timeout').length + clock.delays.length,
    children: children(),
    agentSessions: gateway.sessions,
    upstreamSessions: server.openSessions,
    upstreamStreams: server.openStreams,
    connections: gateway.poolSize,
  };
}

function children(): number {
  return readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8').split(' ').filter(Boolean)
    .length;
}

/** Lets time pass until everybody is forgotten, and what that sets off is over. A leak never ends. */
async function pass(gateway: Gateway): Promise<void> {
  const open = () => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length;
  const quiet = () =>
    gateway.sessions === 0 &&
    gateway.poolSize === 0 &&
    server.openSessions === 0 &&
    server.openStreams === 0 &&
    children() === 0;
  while (!quiet() || open() > 0 || clock.delays.length > 0) {
    clock.advance(500);
    await new Promise(setImmediate);
  }
}

async function inParallel(count: number, width: number, work: (at: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: width }, worker));
}

async function round(gateway: Gateway, agents: number, vanishing: boolean, peak: Peak): Promise<void> {
  const sockets = new Agent({ keepAlive: true, maxSockets: 16 });
  const present: ProbeAgent[] = [];
  await inParallel(agents, 16, async () => {
    const agent = await new ProbeAgent(gateway, sockets).connect();
    await agent.call();
    present.push(agent);
  });
  peak.children = Math.max(peak.children, children());
  peak.upstreamSessions = Math.max(peak.upstreamSessions, server.openSessions);
  await inParallel(agents, 16, async (at) => {
    if (at % 2 === 0) await present[at]?.leave();
    else if (vanishing && at % 40 === 1) await present[at]?.vanishListening();
  });
  if (vanishing) for (let at = 1; at < agents; at += 100) await present[at]?.vanishInCall();
  sockets.destroy();
}

interface Peak {
  children: number;
  upstreamSessions: number;
}

interface Scenario {
  readonly entry: object;
  readonly agents: number;
  readonly rounds: number;
  readonly vanishing: boolean;
}

const remote = { type: 'http', url: server.url, requestTimeoutMs: 2_000_000_000 };
const SCENARIOS: Readonly<Record<string, Scenario>> = {
  shared: { entry: remote, agents: 2_000, rounds: 3, vanishing: true },
  isolated: { entry: { ...remote, isolate: 'session' }, agents: 300, rounds: 3, vanishing: true },
  children: {
    entry: {
      command: '/bin/sh',
      args: [fileURLToPath(new URL('./small-child.sh', import.meta.url))],
      isolate: 'session',
    },
    agents: 100,
    rounds: 3,
    vanishing: false,
  },
};

async function probe({ entry, agents, rounds, vanishing }: Scenario): Promise<Report> {
  const gateway = await openGateway(entry);
  const peak: Peak = { children: 0, upstreamSessions: 0 };
  const figures: Figures[] = [];
  // The first agents make what is made once: compiled code, pools, tables.
  await round(gateway, Math.min(agents, 200), vanishing, peak);
  await pass(gateway);
  figures.push(measured(gateway));
  for (let at = 0; at < rounds; at++) {
    await round(gateway, agents, vanishing, peak);
    await pass(gateway);
    figures.push(measured(gateway));
  }
  await gateway.close();
  return { agents, figures, peak };
}

const report = await probe(SCENARIOS[process.argv[2] ?? ''] as Scenario);
await server.close();
process.stdout.write(`${JSON.stringify(report)}\n`);
