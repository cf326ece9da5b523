/** The library: the manager for an orchestrator's own process, the gateway, and the pure rules of both. */

export { ServerError } from './app/answer.js';
export type { Surroundings } from './app/core.js';
export { type Gateway, startGateway } from './app/gateway.js';
export { McpManager } from './app/manager.js';
export type { CallOptions, ListOptions, ManagerEvents, RequestOptions } from './app/manager-options.js';
export type { TokenSource } from './app/token-source.js';
export type { Clock, Timer } from './base/clock.js';
export { GatewayError, type GatewayErrorCode, type GatewayErrorDetails } from './base/errors.js';
export type { Random } from './base/random.js';
export {
  ConfigError,
  type LoadedConfig,
  type LoadOptions,
  type LoadResult,
  loadConfig,
  parseConfig,
} from './config/load.js';
export type { GatewayConfig, ServerConfig } from './config/types.js';
export { ListenError } from './downstream/listen.js';
export type { EventSink, GatewayEvent } from './pipeline/events.js';
export { emittedScope, remainingTtlMs, type Scope, scopeOf, toolListTtlMs } from './protocol/hints.js';
export type { ListKind } from './protocol/methods.js';
export { listCacheKey, poolKey, poolKeyMatches, shownPoolKey } from './protocol/pool-key.js';
