import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Incoming } from './agent-http.js';
import { FakeClock } from './fake-clock.js';
import { type Forwarding, forwarding } from './forwarding.js';
import {
  McpServer,
  type McpServerOptions,
  type ServerCall,
  type ServerHandler,
  type Wire,
} from './mcp-server.js';
import { type ModernPost, modernPost, responseOf } from './modern-post.js';

/** How long a call waits for questions that come together. */
const GATHER_MS = 20;
const NEVER = { requestTimeoutMs: 1_000_000_000, connectTimeoutMs: 1_000_000_000 };
const LONG = { connectionIdleMs: 2_000_000_000, sessionIdleMs: 2_000_000_000 };

/** An agent that can be asked anything. */
export const ALL = { capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} } };
export const FORM = {
  mode: 'form',
  message: 'Who?',
  requestedSchema: { type: 'object', properties: {} },
};
export const ADA = { action: 'accept', content: { name: 'Ada' } };

type More = ModernPost & { readonly params?: object };

export interface BenchOptions extends McpServerOptions {
  /** The tool that is called. */
  readonly call?: ServerHandler;
  /** General settings. */
  readonly settings?: object;
  /** More members of the server's entry. */
  readonly entry?: object;
}

/** A legacy server of a test's behind a gateway, and modern agents that ask it. */
export class ModernOnLegacy {
  readonly gateway: Forwarding;
  readonly server: McpServer;
  readonly clock: FakeClock;

  constructor(gateway: Forwarding, server: McpServer, clock: FakeClock) {
    this.gateway = gateway;
    this.server = server;
    this.clock = clock;
  }

  post(method: string, params: object = {}, more: ModernPost = {}): Promise<Incoming> {
    return modernPost(this.gateway.url(), method, params, { declaration: ALL, ...more });
  }

  async send(method: string, params: object = {}, more: ModernPost = {}): Promise<Wire> {
    return responseOf(await this.post(method, params, more));
  }

  /** Calls the tool `ask`, or another one. */
  call({ params = {}, ...more }: More = {}): Promise<Wire> {
    return this.send('tools/call', { name: 'ask', arguments: {}, ...params }, more);
  }

  /** Calls it again and brings these, for the questions in the order in which they were asked. */
  retry(asked: Wire, answers: readonly object[], { params, ...more }: More = {}): Promise<Wire> {
    return this.call({ id: '"again"', ...more, params: { ...broughtFor(asked, answers), ...params } });
  }

  /** Everything that a request brings, its response last. */
  async all(method: string, params: object = {}, more: ModernPost = {}): Promise<Wire[]> {
    const answer = await this.post(method, params, more);
    const isStream = String(answer.headers['content-type']).startsWith('text/event-stream');
    return isStream ? await answer.rest() : [await answer.json()];
  }
}

/** The params that bring answers to the questions of an `input_required`. */
export function broughtFor(asked: Wire, answers: readonly object[]): object {
  const keys = Object.keys(asked.result.inputRequests ?? {});
  const inputResponses = Object.fromEntries(answers.map((answer, i) => [keys[i], answer]));
  return { inputResponses, requestState: asked.result.requestState };
}

export async function modernOnLegacy(t: TestContext, options: BenchOptions = {}): Promise<ModernOnLegacy> {
  const { call = askForm, settings, entry, on, ...server } = options;
  const scripted = await McpServer.start({ ...server, on: { 'tools/call': call, ...on } });
  const clock = new FakeClock();
  const gateway = await forwarding(t, {
    servers: { one: { type: 'http', url: scripted.url, ...NEVER, ...entry } },
    behind: [scripted],
    clock,
    settings: { ...LONG, ...settings },
  });
  void gatherSoon(clock);
  return new ModernOnLegacy(gateway, scripted, clock);
}

/** Time stands still but for calls that wait for more questions: what was sent at once has come by then. */
async function gatherSoon(clock: FakeClock): Promise<never> {
  for (;;) {
    await clock.armed((delayMs) => delayMs === GATHER_MS);
    await delay(10);
    clock.advance(GATHER_MS);
  }
}

/** A server that asks for a form and says what it was told. */
export async function askForm({ ask }: ServerCall): Promise<string> {
  const answer = await ask('elicitation/create', FORM);
  return told(answer.result ?? answer.error);
}

/** JSON text of a tool's result with a value in it. */
export function told(value: unknown): string {
  return JSON.stringify({ content: [{ type: 'text', text: JSON.stringify(value) }] });
}

/** What the tool of a test said. */
export function textOf(wire: Wire): string {
  return wire.result?.content?.[0]?.text ?? JSON.stringify(wire);
}
