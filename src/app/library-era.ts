import { GatewayError } from '../base/errors.js';
import type { Agent, Caller } from '../pipeline/exchange.js';
import { CLIENT_CAPABILITIES_META, CLIENT_INFO_META, PROTOCOL_VERSION_META } from '../protocol/meta.js';
import { type Era, LATEST_MODERN_REVISION } from '../protocol/revisions.js';
import type { Core } from './core.js';
import { PRODUCT } from './product.js';

/** Methods of the library's that mean the same in both eras. The others begin sessions, or live in one. */
const IN_BOTH: ReadonlySet<string> = new Set([
  'tools/list',
  'tools/call',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'completion/complete',
]);

/**
 * In which era a library's user asks each server: in the modern one where a remote server speaks it, for its hints are
 * given there. Never by way of the bridge: what a legacy server answers is what the user gets.
 */
export class LibraryEras {
  readonly #core: Pick<Core, 'directory' | 'pool'>;
  readonly #last = new Map<string, Era>();

  constructor(core: Pick<Core, 'directory' | 'pool'>) {
    this.#core = core;
  }

  /**
   * A server that cannot be asked is taken for what it was. Rejects with GatewayError where that is not known, and the
   * failure speaks of the server and not of the question.
   */
  async of(serverId: string, method: string, agent: Agent, caller: Caller): Promise<Era> {
    if (!IN_BOTH.has(method)) return 'legacy';
    const { directory, pool } = this.#core;
    const known = pool.recall(serverId, 'modern');
    if (known) return this.#note(serverId, known);
    const { target } = directory.get(serverId);
    // A child would be started twice to learn it; a server without the older era is reached over the bridge.
    if (target.kind === 'stdio') return 'legacy';
    try {
      return this.#note(serverId, await pool.find({ serverId, agent, caller, era: 'modern' }));
    } catch (failure) {
      const last = this.#last.get(serverId);
      if (last || !(failure instanceof GatewayError)) return last ?? Promise.reject(failure);
      // It may be of those that do not answer what they do not know.
      if (failure.code === 'server_timeout' || failure.code === 'outcome_unknown') return 'legacy';
      throw failure;
    }
  }

  #note(serverId: string, era: Era): Era {
    this.#last.set(serverId, era);
    return era;
  }
}

/** The params of a request as its era has them. */
export function inEra(era: Era, params: Record<string, unknown> | undefined): typeof params {
  if (era === 'legacy') return params;
  const meta = {
    ...(params?.['_meta'] as object | undefined),
    [PROTOCOL_VERSION_META]: LATEST_MODERN_REVISION,
    [CLIENT_INFO_META]: PRODUCT,
    [CLIENT_CAPABILITIES_META]: {},
  };
  return { ...params, _meta: meta };
}
