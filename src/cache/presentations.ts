import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { Exchange } from '../pipeline/exchange.js';
import { remainingTtlMs, type Scope, toolListTtlMs } from '../protocol/hints.js';
import type { CacheableMethod } from '../protocol/methods.js';
import { listCacheKey } from '../protocol/pool-key.js';
import type { Message } from '../wire/message.js';
import { freshUntil, type TtlRules } from './freshness.js';
import { ReadyAnswer } from './ready-answer.js';
import { readHints } from './result-hints.js';
import type { Entry } from './store.js';

export interface PresentationDeps {
  readonly clock: Clock;
  readonly rules: TtlRules;
  /** Who is told `ttlMs` and `cacheScope`. */
  readonly hints: 'modern' | 'always';
}

/** One answer as it may leave; `ready` undefined: as it is, for it is not complete. */
interface Presentation {
  readonly ready: ReadyAnswer | undefined;
  /** What the server itself said, within our bound. */
  readonly ownMs: number;
}

/**
 * How cacheable answers leave: with the time that remains of them and the strictest scope, to agents of a revision that
 * knows these, and without to others. A miss and a hit differ in nothing but the id and that time.
 * https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching
 */
export class Presentations {
  readonly #deps: PresentationDeps;
  /** Prepared once for each answer, however often it leaves. */
  readonly #prepared = new WeakMap<Message, Presentation>();
  readonly #kept = new WeakMap<Message, Entry>();

  constructor(deps: PresentationDeps) {
    this.#deps = deps;
  }

  /** An answer was kept: what leaves of it from now on is told so. */
  kept(entry: Entry): void {
    if (entry.message) this.#kept.set(entry.message, entry);
  }

  /** A kept answer; `doubted`: it is served because the server cannot be asked. */
  hit(exchange: Exchange, method: CacheableMethod, entry: Entry, answer: Message, doubted: boolean): Message {
    const { clock, rules } = this.#deps;
    const remainingMs = doubted ? 0 : remainingTtlMs(freshUntil(entry, rules), clock.now());
    const shared = entry.place === listCacheKey('', entry.serverId, 'public');
    return this.#leave(exchange, method, answer, shared ? 'public' : 'private', remainingMs);
  }

  /** An answer that has just come. */
  fetched(exchange: Exchange, method: CacheableMethod, answer: Message): Message {
    const entry = this.#kept.get(answer);
    if (entry) return this.hit(exchange, method, entry, answer, false);
    return this.#leave(exchange, method, answer, 'private', 0);
  }

  /** An answer that the cache had nothing to do with: its server's own time is told. */
  passed(exchange: Exchange, method: CacheableMethod, answer: Message): Message {
    return this.#leave(exchange, method, answer, 'private', undefined);
  }

  #leave(
    { era, message }: Exchange,
    method: CacheableMethod,
    answer: Message,
    scope: Scope,
    remainingMs: number | undefined,
  ): Message {
    if (answer.kind !== 'result') return answer;
    let prepared = this.#prepared.get(answer);
    if (!prepared) {
      prepared = this.#prepare(answer, message.method, method, era === 'modern', scope);
      this.#prepared.set(answer, prepared);
    }
    return prepared.ready?.leave(message.id, remainingMs ?? prepared.ownMs) ?? answer;
  }

  #prepare(
    answer: Message,
    name: string,
    method: CacheableMethod,
    modern: boolean,
    scope: Scope,
  ): Presentation {
    const { hints, rules } = this.#deps;
    const own = completeHints(name, method, answer);
    if (!own) return { ready: undefined, ownMs: 0 };
    const tell = modern || hints === 'always' ? { scope } : undefined;
    const ownMs = Math.floor(toolListTtlMs(own.ttlMs, 0, rules.maxTtlMs));
    return { ready: new ReadyAnswer(answer, { tell, modern }), ownMs };
  }
}

/** Undefined for what is not complete, or cannot be read: that leaves as it came. */
function completeHints(name: string, method: CacheableMethod, answer: Message) {
  try {
    return readHints('', name, method, answer);
  } catch (failure) {
    if (failure instanceof GatewayError) return undefined;
    throw failure;
  }
}
