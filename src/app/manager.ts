import { EventEmitter } from 'node:events';
import type {
  CallToolResult,
  Prompt,
  Resource,
  ResourceTemplate,
  Tool,
} from '@modelcontextprotocol/sdk/types.js';
import { systemClock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import { sha256Hex } from '../base/hash.js';
import { parseConfig } from '../config/load.js';
import type { GatewayConfig } from '../config/types.js';
import type { EventSink, GatewayEvent } from '../pipeline/events.js';
import { ANONYMOUS, type Caller } from '../pipeline/exchange.js';
import { INVALID_PARAMS } from '../protocol/codes.js';
import { request } from '../protocol/compose.js';
import { cacheableMethod, type ListKind } from '../protocol/methods.js';
import { valueAt } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import { buildCore, type Core, type Surroundings } from './core.js';
import { LocalAgent, localExchange } from './local-agent.js';
import { type Page, walkPages } from './walk.js';

const MAX_PAGES = 1_000;
const WALK_MS = 60_000;

/** A bearer token for a server, or where it comes from. A source that fails counts as no token. */
export type TokenSource = string | (() => string | undefined | Promise<string | undefined>);

export interface RequestOptions {
  readonly token?: TokenSource | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ListOptions extends RequestOptions {
  /** Asks the server itself and renews what is cached. */
  readonly fresh?: boolean | undefined;
}

export interface CallOptions extends RequestOptions {
  /** `params` of each `notifications/progress` of this call, until it is answered. */
  readonly onProgress?: ((params: unknown) => void) | undefined;
}

/** A server's own JSON-RPC error, as it sent it. */
export class ServerError extends Error {
  override readonly name = 'ServerError';
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

interface ManagerEvents {
  /** A server said that a list of its has changed; what was cached of it is gone already. */
  list_changed: [{ serverId: string; list: ListKind }];
  /** Everything else that the gateway notices. */
  event: [GatewayEvent];
}

/**
 * The pool and the list cache inside an orchestrator's own process: connections are made when they are needed and kept,
 * lists are cached by the servers' hints. Every method rejects with GatewayError for a failure of ours, with ServerError
 * for the server's own. What it returns is the caller's to change.
 */
export class McpManager extends EventEmitter<ManagerEvents> {
  readonly #core: Core;
  readonly #agent = new LocalAgent();
  readonly #emit: EventSink;
  readonly #now: () => number;
  #lastId = 0;

  /** Takes a configuration, checked or as it stands in `sidegate.json`; throws where a general setting is wrong. */
  constructor(config: GatewayConfig | object, surroundings: Surroundings = {}) {
    super();
    this.#emit = (event) => {
      surroundings.emit?.(event);
      this.emit('event', event);
    };
    const checked = isChecked(config) ? config : parseConfig(config).config;
    this.#core = buildCore(checked, { ...surroundings, emit: this.#emit });
    this.#core.changes.onChange(({ reason, serverId, kinds }) => {
      if (reason === 'list_changed') for (const list of kinds) this.emit('list_changed', { serverId, list });
    });
    this.#now = (surroundings.clock ?? systemClock).now;
  }

  /** Upstream connections that stand or are being made. */
  get poolSize(): number {
    return this.#core.pool.size;
  }

  /** All tools of a server, in its own order, from every page. */
  async listTools(serverId: string, options: ListOptions = {}): Promise<Tool[]> {
    return (await this.#list(serverId, 'tools/list', options)) as Tool[];
  }

  async listPrompts(serverId: string, options: ListOptions = {}): Promise<Prompt[]> {
    return (await this.#list(serverId, 'prompts/list', options)) as Prompt[];
  }

  async listResources(serverId: string, options: ListOptions = {}): Promise<Resource[]> {
    return (await this.#list(serverId, 'resources/list', options)) as Resource[];
  }

  async listResourceTemplates(serverId: string, options: ListOptions = {}): Promise<ResourceTemplate[]> {
    return (await this.#list(serverId, 'resources/templates/list', options)) as ResourceTemplate[];
  }

  /** Calls a tool, listed or not. A tool's own failure is a result with `isError`. */
  async callTool(
    serverId: string,
    name: string,
    args: Record<string, unknown> = {},
    options: CallOptions = {},
  ): Promise<CallToolResult> {
    const _meta = options.onProgress ? { _meta: { progressToken: 0 } } : {};
    const params = { name, arguments: args, ..._meta };
    return (await this.request(serverId, 'tools/call', params, options)) as CallToolResult;
  }

  /** Any other request; resolves with its `result`. */
  async request(
    serverId: string,
    method: string,
    params?: Record<string, unknown>,
    options: CallOptions & ListOptions = {},
  ): Promise<unknown> {
    const caller = await callerOf(options.token);
    return await this.#send(serverId, request(String(++this.#lastId), method, params), caller, options);
  }

  /** What the server said of itself in its handshake. */
  async serverInfo(serverId: string, options: RequestOptions = {}): Promise<unknown> {
    return await this.request(serverId, 'initialize', {}, options);
  }

  /** Ends a server's connections and drops what is cached of it; with a full pool key, those of one token only. */
  async close(idOrKey: string): Promise<void> {
    const hash = idOrKey.indexOf('#');
    const serverId = hash < 0 ? idOrKey : idOrKey.slice(0, hash);
    const partition = hash < 0 ? {} : { poolKey: idOrKey };
    this.#core.changes.publish({ serverId, reason: 'closed', kinds: [], ...partition });
    await this.#core.pool.close(idOrKey);
  }

  /** Ends everything; the manager is of no use afterwards. */
  async closeAll(): Promise<void> {
    for (const serverId of this.#core.directory.ids)
      this.#core.changes.publish({ serverId, reason: 'closed', kinds: [] });
    await this.#core.close();
  }

  async #list(serverId: string, method: string, options: ListOptions): Promise<unknown[]> {
    const member = cacheableMethod(method)?.list ?? '';
    const caller = await callerOf(options.token);
    let cursorRefused = false;
    const read = async (cursor: string | undefined): Promise<Page> => {
      const params = cursor === undefined ? undefined : { cursor };
      try {
        const message = request(String(++this.#lastId), method, params);
        return readPage(await this.#send(serverId, message, caller, options), member, serverId);
      } catch (failure) {
        cursorRefused =
          cursor !== undefined && failure instanceof ServerError && failure.code === INVALID_PARAMS;
        throw failure;
      }
    };
    const warn = (why: string) =>
      this.#emit({ type: 'warning', serverId, message: `${method} of "${serverId}": ${why}` });
    const walk = () =>
      walkPages(read, { maxPages: MAX_PAGES, until: this.#now() + WALK_MS }, this.#now, warn);
    try {
      return await walk();
    } catch (failure) {
      // The pages kept were forgotten when the server refused a cursor of theirs: one new walk begins.
      if (cursorRefused) return await walk();
      throw failure;
    }
  }

  async #send(
    serverId: string,
    message: Message,
    caller: Caller,
    options: CallOptions & ListOptions,
  ): Promise<unknown> {
    const signal = options.signal ?? new AbortController().signal;
    const fresh = options.fresh ?? false;
    const exchange = localExchange(
      this.#agent,
      { serverId, message, caller, signal, fresh },
      (notification) => {
        if (notification.method === 'notifications/progress' && notification.params)
          options.onProgress?.(valueAt(notification.bytes, notification.params));
      },
    );
    return open(await this.#core.handle(exchange), serverId);
  }
}

function isChecked(config: GatewayConfig | object): config is GatewayConfig {
  return 'servers' in config && Array.isArray(config.servers) && 'disabled' in config;
}

async function callerOf(source: TokenSource | undefined): Promise<Caller> {
  const token =
    typeof source === 'function'
      ? await Promise.resolve()
          .then(source)
          .catch(() => undefined)
      : source;
  return token ? { principal: ANONYMOUS.principal, token, tokenHash: sha256Hex(token) } : ANONYMOUS;
}

function open(answer: Message, serverId: string): unknown {
  if (!answer.body) throw new GatewayError('server_protocol', `"${serverId}" answered nothing`, { serverId });
  const value = valueAt(answer.bytes, answer.body);
  if (answer.kind === 'result') return value;
  const { code, message, data } = value as { code?: unknown; message?: unknown; data?: unknown };
  throw new ServerError(
    typeof code === 'number' ? code : 0,
    typeof message === 'string' ? message : 'no message',
    data,
  );
}

function readPage(result: unknown, member: string, serverId: string): Page {
  const { [member]: list, nextCursor } = result as Record<string, unknown>;
  if (!Array.isArray(list))
    throw new GatewayError('server_protocol', `"${serverId}" answered without a list of ${member}`, {
      serverId,
    });
  return { items: list, nextCursor: typeof nextCursor === 'string' ? nextCursor : undefined };
}
