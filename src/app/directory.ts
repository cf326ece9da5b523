import { GatewayError } from '../base/errors.js';
import type { GatewayConfig, ServerConfig } from '../config/types.js';

/** The configured servers by id, in configuration order. */
export class Directory {
  readonly #servers: ReadonlyMap<string, ServerConfig>;
  readonly #problems: ReadonlyMap<string, readonly string[]>;
  readonly ids: readonly string[];

  constructor(config: Pick<GatewayConfig, 'servers' | 'disabled'>) {
    this.#servers = new Map(config.servers.map((server) => [server.id, server]));
    this.#problems = new Map(config.disabled.map((server) => [server.id, server.problems]));
    this.ids = [...this.#servers.keys(), ...this.#problems.keys()];
  }

  /** Throws GatewayError `server_unknown`, or `server_disabled` with what is wrong with its entry. */
  get(serverId: string): ServerConfig {
    const server = this.#servers.get(serverId);
    if (server) return server;
    const problems = this.#problems.get(serverId);
    if (problems) {
      const why = `Server "${serverId}" is disabled: ${problems.join('; ')}`;
      throw new GatewayError('server_disabled', why, { serverId });
    }
    const known = this.ids.map((id) => `"${id}"`).join(', ') || 'none';
    throw new GatewayError('server_unknown', `No server "${serverId}" is configured; there is ${known}`, {
      serverId,
    });
  }
}
