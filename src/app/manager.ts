import { EventEmitter } from 'node:events';
import type {
  CallToolResult,
  GetPromptResult,
  InitializeResult,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplate,
  Tool,
} from '@modelcontextprotocol/sdk/types.js';
import { systemClock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { GatewayConfig } from '../config/types.js';
import type { Change } from '../pipeline/changes.js';
import type { EventSink } from '../pipeline/events.js';
import { objectOf } from './answer.js';
import { checkedConfig } from './checked-config.js';
import { buildCore, type Core, type Surroundings } from './core.js';
import { Errands, type ListMethod } from './errands.js';
import type { CallOptions, ListOptions, ManagerEvents, RequestOptions } from './manager-options.js';
import { shielded } from './shielded.js';

const LISTS = ['tools', 'prompts', 'resources'] as const;

/**
 * The pool and the list cache inside an orchestrator's own process: connections are made when they are needed and kept,
 * lists are cached by the servers' hints.
 *
 *     const manager = new McpManager({ mcpServers: { files: { command: 'files-server' } } });
 *     const tools = await manager.listTools('files');
 *     await manager.closeAll();
 *
 * Every request rejects with GatewayError for a failure of ours (`cancelled` where its signal was aborted,
 * `shutting_down` after `closeAll`), with ServerError for an error that the server answered, and with TypeError for
 * arguments that are no JSON. What it resolves with is the caller's to change; numbers are as `JSON.parse` gives them.
 */
export class McpManager extends EventEmitter<ManagerEvents> {
  readonly #core: Core;
  readonly #errands: Errands;
  readonly #emit: EventSink;
  #closing: Promise<void> | undefined;

  /**
   * Takes a configuration, checked or in the shape of `sidegate.json`. A bad server is disabled and answers with what is
   * wrong with it; throws ConfigError where a general setting is wrong.
   */
  constructor(config: GatewayConfig | object, surroundings: Surroundings = {}) {
    super();
    const { clock = systemClock, emit = () => {} } = surroundings;
    this.#emit = (event) => {
      shielded('The sink of events', () => emit(event));
      shielded('A listener of "event"', () => this.emit('event', event));
    };
    const checked = checkedConfig(config, { ...surroundings, emit: this.#emit });
    this.#core = buildCore(checked, { ...surroundings, emit: this.#emit });
    this.#errands = new Errands(this.#core, { clock, emit: this.#emit, maxAgents: checked.maxConnections });
    this.#core.changes.onChange((change) => this.#tell(change));
  }

  /** Upstream connections that stand or are being made. */
  get poolSize(): number {
    return this.#core.pool.size;
  }

  /** Configured servers, the disabled ones last. */
  get serverIds(): readonly string[] {
    return this.#core.directory.ids;
  }

  /** All tools of a server, in its own order, from every page. */
  listTools(serverId: string, options: ListOptions = {}): Promise<Tool[]> {
    return this.#list<Tool>(serverId, 'tools/list', options);
  }

  listPrompts(serverId: string, options: ListOptions = {}): Promise<Prompt[]> {
    return this.#list<Prompt>(serverId, 'prompts/list', options);
  }

  listResources(serverId: string, options: ListOptions = {}): Promise<Resource[]> {
    return this.#list<Resource>(serverId, 'resources/list', options);
  }

  listResourceTemplates(serverId: string, options: ListOptions = {}): Promise<ResourceTemplate[]> {
    return this.#list<ResourceTemplate>(serverId, 'resources/templates/list', options);
  }

  /** Calls a tool, listed or not. A tool's own failure is a result with `isError`. */
  callTool(
    serverId: string,
    name: string,
    args: Record<string, unknown> = {},
    options: CallOptions = {},
  ): Promise<CallToolResult> {
    return this.#object<CallToolResult>(serverId, 'tools/call', { name, arguments: args }, options);
  }

  /** Reads a resource; from the cache where the server gave it a TTL. */
  readResource(
    serverId: string,
    uri: string,
    options: CallOptions & ListOptions = {},
  ): Promise<ReadResourceResult> {
    return this.#object<ReadResourceResult>(serverId, 'resources/read', { uri }, options);
  }

  getPrompt(
    serverId: string,
    name: string,
    args: Record<string, string> = {},
    options: CallOptions = {},
  ): Promise<GetPromptResult> {
    return this.#object<GetPromptResult>(serverId, 'prompts/get', { name, arguments: args }, options);
  }

  /** What the server said of itself in its handshake. */
  serverInfo(serverId: string, options: RequestOptions = {}): Promise<InitializeResult> {
    return this.#object<InitializeResult>(serverId, 'initialize', {}, options);
  }

  /** Any request; resolves with its `result`, whatever that is. One page of a list, where it is for a list. */
  async request(
    serverId: string,
    method: string,
    params?: Record<string, unknown>,
    options: CallOptions & ListOptions = {},
  ): Promise<unknown> {
    this.#checkOpen();
    const sent = options.onProgress ? withProgressToken(params) : params;
    return await this.#errands.request({ serverId, method, options }, sent);
  }

  /**
   * Ends a server's connections and drops all that is cached of it; with a full pool key those of one token only. Other
   * requests under way begin anew on another connection, where running them twice does no harm.
   */
  async close(idOrKey: string): Promise<void> {
    if (this.#closing) return this.#closing;
    const [serverId = idOrKey] = idOrKey.split('#', 1);
    if (!this.serverIds.includes(serverId)) this.#core.directory.get(serverId);
    const partition = serverId === idOrKey ? {} : { poolKey: idOrKey };
    this.#core.changes.publish({ serverId, reason: 'closed', kinds: [], ...partition });
    await this.#core.pool.close(idOrKey);
  }

  /** Ends everything; the manager is of no use afterwards. Never rejects, and may be called again. */
  closeAll(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.closeAll();
  }

  /** Last resort at the process's own end: no child outlives it. Synchronous. */
  killChildren(): void {
    this.#core.children.killAllChildren();
  }

  async #end(): Promise<void> {
    const closed = this.#core.close();
    for (const serverId of this.serverIds)
      this.#core.changes.publish({ serverId, reason: 'closed', kinds: [] });
    await closed;
  }

  #tell({ reason, serverId, kinds, uri }: Change): void {
    if (reason === 'updated' && uri !== undefined)
      shielded('A listener of "resource_updated"', () => this.emit('resource_updated', { serverId, uri }));
    if (reason !== 'list_changed' && reason !== 'reinitialized') return;
    for (const list of kinds.length > 0 ? kinds : LISTS)
      shielded('A listener of "list_changed"', () => this.emit('list_changed', { serverId, list }));
  }

  async #list<T>(serverId: string, method: ListMethod, options: ListOptions): Promise<T[]> {
    this.#checkOpen();
    return (await this.#errands.list({ serverId, method, options })) as T[];
  }

  async #object<T extends object>(
    serverId: string,
    method: string,
    params: Record<string, unknown>,
    options: CallOptions & ListOptions,
  ): Promise<T> {
    return objectOf<T>(await this.request(serverId, method, params, options), serverId, method);
  }

  #checkOpen(): void {
    if (this.#closing) throw new GatewayError('shutting_down', 'The manager was closed by `closeAll`');
  }
}

/** Without one of the user's own, any will do: on the wire each request gets another. */
function withProgressToken(params: Record<string, unknown> = {}): Record<string, unknown> {
  return { ...params, _meta: { progressToken: 0, ...(params['_meta'] as object | undefined) } };
}
