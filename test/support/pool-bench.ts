import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { buildCore, type Core } from '../../src/app/core.js';
import { type Gateway, startGateway } from '../../src/app/gateway.js';
import type { Clock } from '../../src/base/clock.js';
import { sha256Hex } from '../../src/base/hash.js';
import type { Random } from '../../src/base/random.js';
import { parseConfig } from '../../src/config/load.js';
import type { GatewayEvent } from '../../src/pipeline/events.js';
import { type Agent, ANONYMOUS, type Caller, type Exchange } from '../../src/pipeline/exchange.js';
import { request } from '../../src/protocol/compose.js';
import { FakeClock } from './fake-clock.js';
import type { Wire } from './mcp-server.js';
import { type Exchanged, RawAgent, type RawAgentOptions } from './raw-agent.js';
import { Happenings } from './stdio-harness.js';

/** Far beyond every test: no limit is reached by moving the clock a little. */
const NEVER_MS = 2_000_000_000;

export interface BenchOptions<C extends Clock = FakeClock> {
  /** General settings, as they stand in `sidegate.json`. */
  readonly settings?: object;
  readonly clock?: C;
  readonly random?: Random;
}

export interface Events {
  readonly events: Happenings<GatewayEvent>;
  /** Events of one type so far. */
  of<T extends GatewayEvent['type']>(type: T): Extract<GatewayEvent, { type: T }>[];
  /** Resolves when so many events of a type have come. */
  happened<T extends GatewayEvent['type']>(type: T, times?: number): Promise<void>;
}

export interface PoolBench<C extends Clock = FakeClock> extends Events {
  readonly gateway: Gateway;
  readonly clock: C;
  url(serverId?: string): string;
  /** An agent whose session stands. */
  agent(options?: RawAgentOptions, serverId?: string): Promise<RawAgent>;
}

function configOf(servers: object, settings: object = {}) {
  const quiet = { port: 0, connectionIdleMs: NEVER_MS, sessionIdleMs: NEVER_MS, keepAliveMs: NEVER_MS };
  return parseConfig({ mcpServers: servers, ...quiet, ...settings }, {}).config;
}

function watched(): Events & { readonly emit: (event: GatewayEvent) => void } {
  const events = new Happenings<GatewayEvent>();
  const of: Events['of'] = (type) => events.all.filter((event) => event.type === type) as never;
  const happened: Events['happened'] = async (type, times = 1) => {
    await events.first(() => of(type).length >= times);
  };
  return { events, of, happened, emit: (event) => events.add(event) };
}

/** A gateway of these `mcpServers`, with time that stands still; closed when the test ends. */
export async function openGateway<C extends Clock = FakeClock>(
  t: TestContext,
  servers: object,
  options: BenchOptions<C> = {},
): Promise<PoolBench<C>> {
  const clock = options.clock ?? (new FakeClock() as Clock as C);
  const { emit, ...events } = watched();
  const surroundings = { clock, emit, env: process.env, random: options.random ?? (() => 0.5) };
  const gateway = await startGateway(configOf(servers, options.settings), surroundings);
  t.after(() => settle(gateway.close(), clock));
  const url = (serverId = 'one') => `${gateway.url}/servers/${serverId}/mcp`;
  const agent = (of: RawAgentOptions = {}, serverId = 'one') => RawAgent.connect(url(serverId), of);
  return { gateway, clock, ...events, url, agent };
}

/** Everything below the agents' side, for agents that a test makes itself. */
export function openCore(
  t: TestContext,
  servers: object,
  options: BenchOptions = {},
): Events & { readonly core: Core; readonly clock: FakeClock } {
  const clock = options.clock ?? new FakeClock();
  const { emit, ...events } = watched();
  const random = options.random ?? (() => 0.5);
  const core = buildCore(configOf(servers, options.settings), { clock, emit, random });
  t.after(() => settle(core.close(), clock));
  return { core, clock, ...events };
}

/** Lets time pass in small steps, between which what has begun goes on, until something is true. */
export async function passUntil(clock: FakeClock, isTrue: () => boolean, stepMs = 1_000): Promise<void> {
  while (!isTrue()) {
    clock.advance(stepMs);
    await new Promise(setImmediate);
  }
}

/** Waits for something that may wait for the clock. */
export async function settle(ending: Promise<unknown>, clock: Clock): Promise<void> {
  let over = false;
  const ended = ending.finally(() => {
    over = true;
  });
  if (clock instanceof FakeClock) await passUntil(clock, () => over, 250);
  await ended;
}

/** Entry of a server over Streamable HTTP. */
export function remote(url: string, more: object = {}): object {
  return { type: 'http', url, requestTimeoutMs: NEVER_MS, connectTimeoutMs: NEVER_MS, ...more };
}

/** An agent that takes no questions; `fingerprint` is what it offers. */
export function localAgent(id: string, fingerprint = '{}', listening = false): Agent {
  const profile = { revision: '2025-11-25', capabilities: fingerprint, fingerprint, clientInfo: '' };
  return {
    id,
    profile,
    listening,
    notify: () => {},
    ask: () => Promise.reject(new Error('not asked')),
  };
}

export function caller(token?: string, principal: string = ANONYMOUS.principal): Caller {
  return { principal, token, tokenHash: token === undefined ? undefined : sha256Hex(token) };
}

/** One request of an agent that a test made; `params` is given as it is. */
export function exchange(agent: Agent, from: Caller, method: string, params?: object): Exchange {
  return {
    serverId: 'one',
    message: request('1', method, params),
    era: 'legacy',
    agent,
    caller: from,
    signal: new AbortController().signal,
    fresh: false,
    notify: () => {},
    ask: () => Promise.reject(new Error('not asked')),
  };
}

/** The text of a tool's answer; fails where it is none. */
export function textOf({ answer, text }: Pick<Exchanged, 'answer' | 'text'>): string {
  assert.ok(answer?.result, text);
  return answer.result.content[0].text;
}

/** JSON text of a tool's result. */
export function toolText(text: unknown): string {
  return JSON.stringify({ content: [{ type: 'text', text: String(text) }] });
}

export function toolList(...names: string[]): string {
  return JSON.stringify({ tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })) });
}

export function namesOf({ answer, text }: Pick<Exchanged, 'answer' | 'text'>): string[] {
  assert.ok(answer?.result, text);
  return (answer.result.tools as { name: string }[]).map(({ name }) => name);
}

/** The error of an answer; fails where there is none. */
export function errorOf({ answer, text }: Pick<Exchanged, 'answer' | 'text'>): {
  readonly message: string;
  readonly code: number;
  readonly data: { readonly code: string; readonly server: string; readonly retryAfterMs?: number };
} {
  assert.ok(answer?.error, text);
  return answer.error as ReturnType<typeof errorOf>;
}

/** Whether a message of the general stream is that notification. */
export function says(method: string): (message: Wire) => boolean {
  return (message) => message.method === method;
}

const CHILD = fileURLToPath(new URL('./pool-child.mjs', import.meta.url));

/** A stdio server that writes down what it does; see `pool-child.mjs`. */
export class ChildServer {
  readonly #folder = mkdtempSync(join(tmpdir(), 'sidegate-pool-'));

  constructor(t: TestContext) {
    t.after(() => rmSync(this.#folder, { recursive: true, force: true }));
  }

  /** Entry of the server, with these flags. */
  entry(flags: readonly string[] = [], more: object = {}): object {
    const limits = { connectTimeoutMs: NEVER_MS, requestTimeoutMs: NEVER_MS };
    const args = [CHILD, `--folder=${this.#folder}`, ...flags];
    return { command: process.execPath, args, ...limits, ...more };
  }

  path(name: string): string {
    return join(this.#folder, name);
  }

  /** What all its processes have done so far: `start`, `initialize`, or the name of a tool, each with the pid. */
  get log(): readonly { readonly what: string; readonly pid: number }[] {
    if (!existsSync(this.path('log'))) return [];
    const lines = readFileSync(this.path('log'), 'utf8').trim().split('\n');
    return lines.map((line) => ({ what: line.split(' ')[0] as string, pid: Number(line.split(' ')[1]) }));
  }

  count(what: string): number {
    return this.log.filter((entry) => entry.what === what).length;
  }

  pids(): number[] {
    return this.log.filter(({ what }) => what === 'start').map(({ pid }) => pid);
  }
}
