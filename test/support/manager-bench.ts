import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type GatewayEvent, McpManager, type Surroundings } from '../../src/index.js';
import { FakeClock } from './fake-clock.js';
import { McpServer, type McpServerOptions, type ServerHandler } from './mcp-server.js';
import { Happenings } from './stdio-harness.js';

/** One manager, and all that can be seen of it from outside. */
export interface ManagerBench {
  readonly manager: McpManager;
  readonly clock: FakeClock;
  readonly events: Happenings<GatewayEvent>;
  /** What the manager tells its user. */
  readonly news: Happenings<{ readonly serverId: string; readonly list: string }>;
  /** What became of each listing so far, in order. */
  outcomes(): string[];
}

export interface ManagerOptions {
  /** General settings, as they stand in `sidegate.json`. */
  readonly settings?: object;
  readonly env?: NodeJS.ProcessEnv;
  readonly surroundings?: Surroundings;
}

/** Far beyond every TTL: moving the clock through one ends no connection and no request. */
const NEVER_MS = 2_000_000_000;

/** A manager of these `mcpServers`, with time that stands still; closed when the test ends. */
export function openManager(t: TestContext, servers: object, options: ManagerOptions = {}): ManagerBench {
  const clock = new FakeClock();
  const events = new Happenings<GatewayEvent>();
  const news = new Happenings<{ readonly serverId: string; readonly list: string }>();
  const config = { mcpServers: servers, connectionIdleMs: NEVER_MS, ...options.settings };
  const emit = (event: GatewayEvent) => events.add(event);
  const manager = new McpManager(config, { clock, emit, env: options.env ?? {}, ...options.surroundings });
  manager.on('list_changed', (change) => news.add(change));
  t.after(() => manager.closeAll());
  const outcomes = () =>
    events.all.flatMap((event) => (event.type === 'cache_outcome' ? [event.outcome as string] : []));
  return { manager, clock, events, news, outcomes };
}

/** Entry of a server over Streamable HTTP. */
export function remote(url: string, more: object = {}): object {
  return { type: 'http', url, requestTimeoutMs: NEVER_MS, connectTimeoutMs: NEVER_MS, ...more };
}

/** A scripted server that ends with the test. */
export async function serve(t: TestContext, options: McpServerOptions = {}, port = 0): Promise<McpServer> {
  const server = await McpServer.start(options, port);
  t.after(() => server.close());
  return server;
}

/** A scripted server whose tool lists are `list()`, and a manager of it under the id `one`. */
export async function benchOf(
  t: TestContext,
  list: ServerHandler,
  options: ManagerOptions & { readonly entry?: object; readonly server?: McpServerOptions } = {},
): Promise<ManagerBench & { readonly server: McpServer }> {
  const server = await serve(t, {
    ...options.server,
    on: { 'tools/list': list, ...options.server?.on },
  });
  return { ...openManager(t, { one: remote(server.url, options.entry) }, options), server };
}

/** JSON text of a tool list. */
export function toolList(names: readonly string[], hints: object = {}): string {
  return JSON.stringify({
    tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })),
    ...hints,
  });
}

export function namesOf(list: readonly { readonly name: string }[]): string[] {
  return list.map(({ name }) => name);
}

/** The token that a request carried; undefined where it carried none. */
export function tokenOf(call: Parameters<ServerHandler>[0]): string | undefined {
  return call.headers.authorization?.replace(/^Bearer /, '');
}

/** An answer that is held until the test gives it. */
export class Held<T> {
  readonly #requests = new Happenings<(value: T | PromiseLike<T>) => void>();
  #taken = 0;

  /** What a handler answers with. */
  readonly next = (): Promise<T> => new Promise((resolve) => this.#requests.add(resolve));

  /** Answers the oldest request that waits, once there is one. */
  async answer(value: T | PromiseLike<T>): Promise<void> {
    const at = this.#taken++;
    (await this.#requests.first((request) => this.#requests.all.indexOf(request) === at))(value);
  }

  /** Resolves when so many requests have come. */
  async received(times = 1): Promise<void> {
    await this.#requests.first((request) => this.#requests.all.indexOf(request) === times - 1);
  }
}

/** Entry of a small stdio server whose lists name themselves `listing-1`, `listing-2`, …; see `list-child.mjs`. */
export function listChild(...flags: string[]): object {
  return { command: process.execPath, args: [LIST_CHILD, ...flags] };
}

export const LIST_CHILD = fileURLToPath(new URL('./list-child.mjs', import.meta.url));
