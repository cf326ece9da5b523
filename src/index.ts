/** The library: the manager for an orchestrator's own process, the gateway, and the pure rules of both. */

export type { Surroundings } from './app/core.js';
export { type Gateway, startGateway } from './app/gateway.js';
export {
  type CallOptions,
  type ListOptions,
  McpManager,
  type RequestOptions,
  ServerError,
  type TokenSource,
} from './app/manager.js';
export { GatewayError, type GatewayErrorCode, type GatewayErrorDetails } from './base/errors.js';
export type { GatewayConfig, ServerConfig } from './config/types.js';
export type { GatewayEvent } from './pipeline/events.js';
export { type Scope, scopeOf, toolListTtlMs } from './protocol/hints.js';
export { listCacheKey, poolKey, poolKeyMatches, shownPoolKey } from './protocol/pool-key.js';
