import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { EventSink } from '../pipeline/events.js';
import type { Caller } from '../pipeline/exchange.js';
import { request } from '../protocol/compose.js';
import type { Message } from '../wire/message.js';
import { pageOf, paramsOf, refusesCursor, resultOf } from './answer.js';
import { cancellable } from './cancellable.js';
import type { Core } from './core.js';
import { inEra, LibraryEras } from './library-era.js';
import { type LocalAgent, LocalAgents, localExchange } from './local-agent.js';
import type { CallOptions, ListOptions } from './manager-options.js';
import { callerOf } from './token-source.js';
import { walkPages } from './walk.js';

/** Methods that list something, and the member of the result that holds it. */
const LIST_MEMBERS = {
  'tools/list': 'tools',
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
} as const;
export type ListMethod = keyof typeof LIST_MEMBERS;

/** What a user of the library wants of a server. */
export interface Errand {
  readonly serverId: string;
  readonly method: string;
  readonly options: CallOptions & ListOptions;
}

export interface ErrandsDeps {
  readonly clock: Clock;
  readonly emit: EventSink;
  /** Tokens of which anything is remembered. */
  readonly maxAgents: number;
}

type Params = Record<string, unknown> | undefined;

/** One message on its way to the answer's `result`. */
type Send = (params: Params) => Promise<unknown>;

/** Takes a library user's requests to the servers. Rejects with GatewayError, ServerError or TypeError. */
export class Errands {
  readonly #core: Core;
  readonly #deps: ErrandsDeps;
  readonly #agents: LocalAgents;
  readonly #eras: LibraryEras;
  #lastId = 0;

  constructor(core: Core, deps: ErrandsDeps) {
    this.#core = core;
    this.#deps = deps;
    this.#eras = new LibraryEras(core);
    this.#agents = new LocalAgents(deps.maxAgents, (agent) => core.bridge.leave(agent));
  }

  request(errand: Errand, params: Params): Promise<unknown> {
    return this.#run(errand, (send) => send(params));
  }

  /** The items of every page. */
  list(errand: Errand & { readonly method: ListMethod }): Promise<unknown[]> {
    const { serverId, method } = errand;
    const { clock, emit } = this.#deps;
    const warn = (why: string) =>
      emit({ type: 'warning', serverId, message: `${method} of "${serverId}": ${why}` });
    return this.#run(errand, (send) => {
      const read = async (cursor: string | undefined) => {
        const page = await send(cursor === undefined ? undefined : { cursor });
        return pageOf(page, serverId, method, LIST_MEMBERS[method]);
      };
      return walkPages({ read, refusesCursor, now: () => clock.now(), warn });
    });
  }

  /** Does an errand in the name of whoever the token stands for, until the user gives it up. */
  async #run<T>(errand: Errand, work: (send: Send) => Promise<T>): Promise<T> {
    const { serverId, method, options } = errand;
    this.#core.directory.get(serverId);
    const cancelled = (cause: unknown) =>
      new GatewayError('cancelled', `${method} to server "${serverId}" was cancelled`, { serverId, cause });
    return await cancellable(options.signal, cancelled, async (signal, fail) => {
      const caller = await callerOf(options.token, () => this.#tokenFailed(serverId));
      signal.throwIfAborted();
      const notify = progressListener(options.onProgress, fail);
      return await this.#agents.run(caller, (agent) =>
        work((params) => this.#send(errand, params, { agent, caller, signal, notify })),
      );
    });
  }

  async #send({ serverId, method, options }: Errand, params: Params, way: Way): Promise<unknown> {
    const { agent, ...rest } = way;
    const era = await this.#eras.of(serverId, method, agent, way.caller);
    const message = request(String(++this.#lastId), method, inEra(era, params));
    const fresh = options.fresh ?? false;
    const answer = await this.#core.handle(localExchange(agent, { ...rest, era, serverId, message, fresh }));
    return resultOf(answer, serverId);
  }

  #tokenFailed(serverId: string): void {
    const message = `The token source for server "${serverId}" failed: the request goes without a token`;
    this.#deps.emit({ type: 'warning', serverId, message });
  }
}

/** In whose name a message goes, and what ends it. */
interface Way {
  readonly agent: LocalAgent;
  readonly caller: Caller;
  readonly signal: AbortSignal;
  readonly notify: (message: Message) => void;
}

function progressListener(
  onProgress: CallOptions['onProgress'],
  failed: (failure: unknown) => void,
): Way['notify'] {
  return (notification) => {
    if (!onProgress || notification.method !== 'notifications/progress') return;
    try {
      onProgress(paramsOf(notification));
    } catch (failure) {
      failed(failure);
    }
  };
}
