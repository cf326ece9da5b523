/** What `list_changed` notifications speak of; purge generations are counted per server and kind. */
export type ListKind = 'tools' | 'prompts' | 'resources' | 'discovery';

export interface CacheableMethod {
  readonly kind: ListKind;
  /** Members of `params` that change the result. `_meta` never does. */
  readonly params: readonly ('cursor' | 'uri')[];
  /** The array that a well-formed result must hold, or undefined where it is no list. */
  readonly list: 'tools' | 'prompts' | 'resources' | 'resourceTemplates' | undefined;
  /** True where an absent `ttlMs` means "do not keep" instead of "use the operator's default". */
  readonly onlyWithTtl: boolean;
}

const CACHEABLE: ReadonlyMap<string, CacheableMethod> = new Map<string, CacheableMethod>([
  ['tools/list', { kind: 'tools', params: ['cursor'], list: 'tools', onlyWithTtl: false }],
  ['prompts/list', { kind: 'prompts', params: ['cursor'], list: 'prompts', onlyWithTtl: false }],
  ['resources/list', { kind: 'resources', params: ['cursor'], list: 'resources', onlyWithTtl: false }],
  [
    'resources/templates/list',
    { kind: 'resources', params: ['cursor'], list: 'resourceTemplates', onlyWithTtl: false },
  ],
  ['resources/read', { kind: 'resources', params: ['uri'], list: undefined, onlyWithTtl: true }],
  ['server/discover', { kind: 'discovery', params: [], list: undefined, onlyWithTtl: false }],
]);

/**
 * How the results of a method may be kept; undefined: not at all.
 * https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching
 */
export function cacheableMethod(method: string): CacheableMethod | undefined {
  return CACHEABLE.get(method);
}

const LIST_CHANGED: ReadonlyMap<string, ListKind> = new Map([
  ['notifications/tools/list_changed', 'tools'],
  ['notifications/prompts/list_changed', 'prompts'],
  ['notifications/resources/list_changed', 'resources'],
]);

/** The kind of list that a notification says has changed, or undefined. */
export function listChangedKind(method: string): ListKind | undefined {
  return LIST_CHANGED.get(method);
}

const REPEATABLE = new Set([
  'ping',
  'initialize',
  'server/discover',
  'tools/list',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
  'completion/complete',
  'logging/setLevel',
  'tasks/get',
  'tasks/list',
  'tasks/result',
  'subscriptions/listen',
]);

/** True where running a request twice does what running it once does, so that it may be sent again. */
export function isRepeatable(method: string): boolean {
  return REPEATABLE.has(method);
}

const NAME_SOURCES: ReadonlyMap<string, 'name' | 'uri' | 'taskId'> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
]);

/**
 * The member of `params` that the `Mcp-Name` header mirrors, or undefined for methods without that header.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#standard-request-headers
 */
export function nameSource(method: string): 'name' | 'uri' | 'taskId' | undefined {
  return NAME_SOURCES.get(method);
}

/**
 * True where a server may answer `input_required`.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#supported-requests
 */
export function mayAskForInput(method: string): boolean {
  return method === 'tools/call' || method === 'prompts/get' || method === 'resources/read';
}
