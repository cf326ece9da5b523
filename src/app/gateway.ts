import type { Readable, Writable } from 'node:stream';
import { GatewayError, messageOf } from '../base/errors.js';
import type { GatewayConfig } from '../config/types.js';
import type { Backend } from '../downstream/backend.js';
import { startHttp } from '../downstream/http.js';
import { serveStdio } from '../downstream/stdio.js';
import { checkedConfig } from './checked-config.js';
import { buildCore, type Core, type Surroundings } from './core.js';
import { adminPages } from './health.js';
import { mirroredParams } from './mirrored-params.js';

/** A gateway that listens. */
export interface Gateway {
  /** `http://host:port`, without a path. */
  readonly url: string;
  readonly port: number;
  /** Ids that have an endpoint, in configuration order. */
  readonly serverIds: readonly string[];
  /** Sessions of agents at present. */
  readonly sessions: number;
  /** Upstream connections that stand or are being made. */
  readonly poolSize: number;
  /** Ends the gateway gently: what is under way may finish within `shutdownMs`. */
  drain(): Promise<void>;
  /** Ends it now. */
  close(): Promise<void>;
  /** Last resort at the process's own end: no child outlives it. Synchronous. */
  killChildren(): void;
}

/** A gateway that serves one agent over a pair of streams. */
export interface StdioGateway extends Pick<Gateway, 'drain' | 'close' | 'killChildren'> {
  /** Settles when the agent is gone and everything is closed. */
  readonly done: Promise<void>;
}

/** Part of `shutdownMs` that is kept for the servers' side: upstream sessions and children are ended last. */
const CLOSING_MS = 1_000;

function agentsMs({ shutdownMs }: GatewayConfig): number {
  return Math.max(shutdownMs - CLOSING_MS, shutdownMs / 2);
}

/**
 * Starts the gateway and resolves when it listens. Takes a configuration, checked or in the shape of `sidegate.json`.
 * Rejects with ConfigError where a general setting is wrong, with ListenError when the port cannot be had.
 */
export async function startGateway(
  given: GatewayConfig | object,
  surroundings: Surroundings = {},
): Promise<Gateway> {
  const config = checkedConfig(given, surroundings);
  const core = buildCore(config, surroundings);
  const { clock, emit } = core;
  let draining = false;
  const admin = adminPages(() => draining);
  const http = await startHttp({ ...config, clock, emit, admin }, backendOf(core)).catch(
    async (failure: unknown) => {
      await core.close();
      throw failure;
    },
  );
  const end = async (deadlineAt: number) => {
    draining = true;
    await http.drain(deadlineAt);
    await core.close();
  };
  return {
    url: http.url,
    port: http.port,
    serverIds: core.directory.ids,
    get sessions() {
      return http.sessions;
    },
    get poolSize() {
      return core.pool.size;
    },
    drain: () => end(clock.now() + agentsMs(config)),
    close: () => end(clock.now()),
    killChildren: () => core.children.killAllChildren(),
  };
}

/**
 * Agents kill what they started four seconds after they closed its input, and then nobody ends its children: the official
 * SDKs do. By then they are gone, whatever they make of the end of theirs.
 */
const GRACES_OF_STDIO = { closeGraceMs: 1_000, termGraceMs: 1_500 };

/** Serves one agent on a pair of streams instead of HTTP. Throws GatewayError for an unknown or disabled server. */
export function serveAgentOnStdio(
  config: GatewayConfig,
  {
    serverId,
    stdin,
    stdout,
  }: { readonly serverId: string; readonly stdin: Readable; readonly stdout: Writable },
  surroundings: Surroundings = {},
): StdioGateway {
  const core = buildCore(config, surroundings, GRACES_OF_STDIO);
  const { clock, emit } = core;
  core.directory.get(serverId);
  const { maxRequestBytes, shutdownMs } = config;
  const options = { serverId, maxRequestBytes, finishMs: shutdownMs, clock, emit };
  const agent = serveStdio(options, backendOf(core), stdin, stdout);
  const done = agent.done.then(() => core.close());
  return {
    done,
    async drain() {
      await agent.drain(clock.now() + agentsMs(config));
      await done;
    },
    async close() {
      await agent.close();
      await done;
    },
    killChildren: () => core.children.killAllChildren(),
  };
}

/** The rest of the gateway as the agents' side sees it. */
function backendOf(core: Core): Backend {
  /** Nobody waits for an answer here: a server that cannot be had is an event. */
  const quietly = (serverId: string, method: string, act: () => void) => {
    try {
      core.directory.get(serverId);
      act();
    } catch (failure) {
      if (!(failure instanceof GatewayError)) throw failure;
      core.emit({ type: 'message_dropped', serverId, method, why: messageOf(failure) });
    }
  };
  const { pool, handle } = core;
  const tools = {
    handle,
    headerPlan: pool.headerPlan.bind(pool),
    recall: pool.recall.bind(pool),
    listed: pool.listed.bind(pool),
  };
  return {
    handle,
    mirroredParams: (exchange) => mirroredParams(exchange, tools),
    notify: (serverId, agent, caller, message) =>
      quietly(serverId, message.method, () => core.bridge.notify(serverId, agent, caller, message)),
    listen: (serverId, agent, caller) =>
      quietly(serverId, 'listen', () => core.bridge.listen(serverId, agent, caller)),
    leave: (agent) => core.bridge.leave(agent),
    serverIds: () => core.directory.ids,
  };
}
