import { type Clock, systemClock } from '../base/clock.js';
import { type Random, systemRandom } from '../base/random.js';
import { Bridge } from '../bridge/bridge.js';
import { Doubts } from '../cache/doubts.js';
import { cacheLayer } from '../cache/layer.js';
import { memoryStore } from '../cache/memory.js';
import { environment, toolListTtlFromEnv, warnOnce } from '../config/env.js';
import type { GatewayConfig, ServerConfig } from '../config/types.js';
import { ChangeBus } from '../pipeline/changes.js';
import { type EventSink, withoutSecrets } from '../pipeline/events.js';
import { type Handler, type Layer, stack } from '../pipeline/exchange.js';
import { ChildRegistry, type EndGraces } from '../upstream/child.js';
import { OriginPools } from '../upstream/origin.js';
import { Pool, type PoolDeps, type PooledServer } from '../upstream/pool.js';
import { openRemote } from '../upstream/remote.js';
import { openStdio } from '../upstream/stdio.js';
import { TransportMemory } from '../upstream/transport-memory.js';
import { Directory } from './directory.js';
import { PRODUCT } from './product.js';
import { shielded } from './shielded.js';

/** What the outer world provides; each has the real one as its default. */
export interface Surroundings {
  readonly clock?: Clock;
  readonly random?: Random;
  readonly emit?: EventSink;
  readonly env?: NodeJS.ProcessEnv;
}

/** Everything below the agents' side: what the gateway and the library have in common. */
export interface Core {
  readonly directory: Directory;
  readonly pool: Pool;
  readonly bridge: Bridge;
  readonly changes: ChangeBus;
  readonly children: ChildRegistry;
  readonly handle: Handler;
  readonly clock: Clock;
  readonly emit: EventSink;
  close(): Promise<void>;
}

/** The parts that others are made of. */
interface Base extends Required<Surroundings> {
  readonly config: GatewayConfig;
  readonly directory: Directory;
  readonly changes: ChangeBus;
  readonly doubts: Doubts;
  readonly children: ChildRegistry;
  readonly graces: Partial<EndGraces>;
  readonly origins: OriginPools;
}

/** A socket that does not open within this is given up, whatever longer time a server may have to initialize. */
const SOCKET_TIMEOUT_MS = 10_000;

/** `graces`: how long children may take to leave, if that is not the usual time. */
export function buildCore(
  config: GatewayConfig,
  surroundings: Surroundings = {},
  graces: Partial<EndGraces> = {},
): Core {
  const clock = surroundings.clock ?? systemClock;
  const base: Base = {
    clock,
    random: surroundings.random ?? systemRandom,
    emit: sinkOf(surroundings),
    env: surroundings.env ?? environment(),
    config,
    directory: new Directory(config),
    changes: new ChangeBus(),
    doubts: new Doubts(),
    children: new ChildRegistry(),
    graces,
    origins: new OriginPools({ clock, connectTimeoutMs: SOCKET_TIMEOUT_MS }),
  };
  const pool = buildPool(base);
  const known: Layer = (exchange, next) => {
    base.directory.get(exchange.serverId);
    return next(exchange);
  };
  const forward: Handler = (exchange) => pool.handle(exchange);
  const bridge = buildBridge(base, pool, forward);
  // THE ORDER OF LAYERS, outermost first. Authentication, limits, policy and aggregation come before `known`; trust comes
  // behind the cache.
  const handle = stack([known, buildCache(base, pool), bridge.layer], forward);
  const { directory, changes, children, origins } = base;
  const close = async () => {
    bridge.close();
    await pool.closeAll();
    await origins.close();
  };
  return { directory, pool, bridge, changes, children, handle, clock, emit: base.emit, close };
}

/** A sink that fails costs nobody an answer. */
function sinkOf({ emit }: Surroundings): EventSink {
  return emit ? (event) => shielded('The sink of events', () => emit(event)) : () => {};
}

function buildBridge(base: Base, pool: Pool, handle: Handler): Bridge {
  const { parkMs, maxParkedCalls, maxSessions, sessionIdleMs } = base.config;
  const servers = {
    handle,
    notify: pool.notify.bind(pool),
    listen: pool.listen.bind(pool),
    leave: pool.leave.bind(pool),
    listed: pool.listed.bind(pool),
  };
  const bounds = { parkMs, maxParkedCalls, maxAgents: maxSessions, agentIdleMs: sessionIdleMs };
  const partitionOf = pool.partitionOf.bind(pool);
  return new Bridge({ ...base, ...bounds, eras: pool, servers, partitionOf });
}

function buildPool(base: Base): Pool {
  const { config, directory, doubts } = base;
  return new Pool({
    ...base,
    server: pooledServers(directory),
    openLink: linkOpener(base),
    maxConnections: config.maxConnections,
    connectionIdleMs: config.connectionIdleMs,
    factsTtlMs: config.maxTtlMs,
    us: PRODUCT,
    doubt: (serverId) => doubts.doubt(serverId),
  });
}

function linkOpener(base: Base): PoolDeps['openLink'] {
  const { clock, random, env, config, directory, children, graces, origins } = base;
  const transports = new TransportMemory(clock);
  return (serverId, token, events, signal) => {
    const server = directory.get(serverId);
    const { id, target, connectTimeoutMs } = server;
    const { maxAnswerBytes } = config;
    const secrets = token === undefined ? secretsOf(server) : [...secretsOf(server), token];
    const emit = withoutSecrets(base.emit, secrets);
    if (target.kind === 'stdio')
      return openStdio({ id, target }, events, {
        ...graces,
        maxLineBytes: maxAnswerBytes,
        emit,
        clock,
        env,
        children,
      });
    const options = { clock, random, emit, origins, transports, maxAnswerBytes, connectTimeoutMs, signal };
    return openRemote({ id, target }, { token }, events, options);
  };
}

function buildCache(base: Base, pool: Pool): Layer {
  const { config, directory, env, emit } = base;
  const warn = warnOnce((message) => emit({ type: 'warning', message }));
  return cacheLayer({
    ...base,
    store: memoryStore({ maxBytes: config.cacheMaxBytes, maxEntries: config.cacheMaxEntries }),
    rules: {
      defaultTtlMs: (serverId) =>
        directory.get(serverId).toolListTtlMs ?? toolListTtlFromEnv(env, config.toolListTtlMs, warn),
      maxTtlMs: config.maxTtlMs,
    },
    hints: config.hints,
    sharePublic: (serverId) => directory.get(serverId).sharePublic,
    partitionOf: (serverId, agent, caller) => pool.partitionOf(serverId, agent, caller),
  });
}

/** Each made once: every request asks for its server. */
function pooledServers(directory: Directory): (serverId: string) => PooledServer {
  const made = new WeakMap<ServerConfig, PooledServer>();
  return (serverId) => {
    const server = directory.get(serverId);
    const known = made.get(server);
    if (known) return known;
    const first = pooled(server);
    made.set(server, first);
    return first;
  };
}

function pooled(server: ServerConfig): PooledServer {
  const takesToken = server.target.kind === 'remote' && server.target.forwardAuthorization;
  const era = isSsePair(server) ? 'legacy' : server.era;
  return { ...server, era, takesToken, secrets: secretsOf(server) };
}

/** The transport of the first revision, which knows no other era. */
function isSsePair({ target }: ServerConfig): boolean {
  return target.kind === 'remote' && target.transport === 'sse';
}

/** Values of configured headers, and the credentials in them. A child's environment is its own to show. */
function secretsOf({ target }: ServerConfig): string[] {
  if (target.kind === 'stdio') return [];
  return Object.values(target.headers).flatMap((value) => [value, value.replace(/^\S+ /, '')]);
}
