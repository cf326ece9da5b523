import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { Exchange } from '../pipeline/exchange.js';
import { emittedScope, remainingTtlMs, toolListTtlMs } from '../protocol/hints.js';
import type { CacheableMethod } from '../protocol/methods.js';
import { listCacheKey } from '../protocol/pool-key.js';
import type { Message } from '../wire/message.js';
import { freshUntil, type TtlRules } from './freshness.js';
import { ReadyAnswer } from './ready-answer.js';
import { type ResultHints, readHints } from './result-hints.js';
import type { Entry } from './store.js';

export interface PresentationDeps {
  readonly clock: Clock;
  readonly rules: TtlRules;
  /** Who is told `ttlMs` and `cacheScope`. */
  readonly hints: 'modern' | 'always';
}

/** An entry that holds an answer. */
export interface Kept {
  readonly entry: Entry;
  readonly message: Message;
}

/**
 * How cacheable answers leave: with the time that remains of them and the strictest scope, to agents of a revision that
 * knows these, and without to others. A miss and a hit differ in nothing but the id and that time.
 * https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching
 */
export class Presentations {
  readonly #deps: PresentationDeps;
  readonly #hints = new WeakMap<Message, ResultHints>();
  readonly #kept = new WeakMap<Message, Kept>();
  /** Prepared once for each answer, however often it leaves. */
  readonly #ready = new WeakMap<Message, ReadyAnswer>();

  constructor(deps: PresentationDeps) {
    this.#deps = deps;
  }

  /** `readHints` of an answer, which is read once. */
  read({ serverId, message }: Exchange, method: CacheableMethod, answer: Message): ResultHints | undefined {
    const known = this.#hints.get(answer);
    if (known) return known;
    const hints = readHints(serverId, message.method, method, answer);
    if (hints) this.#hints.set(answer, hints);
    return hints;
  }

  /** An answer was kept, in these or in equal bytes: what leaves of it from now on is told so. */
  kept(answer: Message, hints: ResultHints, kept: Kept): void {
    this.#kept.set(answer, kept);
    this.#hints.set(kept.message, hints);
  }

  /** A kept answer; `doubted`: it is served because its server cannot be asked. */
  hit(exchange: Exchange, method: CacheableMethod, { entry, message }: Kept, doubted: boolean): Message {
    const { clock, rules } = this.#deps;
    const ready = this.#ready.get(message) ?? this.#prepared(exchange, method, message, entry);
    const remainingMs = doubted ? 0 : remainingTtlMs(freshUntil(entry, rules), clock.now());
    return ready?.leave(exchange.message.id, remainingMs) ?? message;
  }

  /** An answer that has just come. */
  fetched(exchange: Exchange, method: CacheableMethod, answer: Message): Message {
    const kept = this.#kept.get(answer);
    if (kept) return this.hit(exchange, method, kept, false);
    const ready = this.#ready.get(answer) ?? this.#prepared(exchange, method, answer, undefined);
    return ready?.leave(exchange.message.id, 0) ?? answer;
  }

  /** An answer that the cache had nothing to do with: its server's own time is told, within our bound. */
  passed(exchange: Exchange, method: CacheableMethod, answer: Message): Message {
    const ready = this.#prepared(exchange, method, answer, undefined);
    if (!ready) return answer;
    const own = toolListTtlMs(this.#hints.get(answer)?.ttlMs, 0, this.#deps.rules.maxTtlMs);
    return ready.leave(exchange.message.id, Math.floor(own));
  }

  /** Undefined for what is not complete, or cannot be read: that leaves as it came. */
  #prepared(
    exchange: Exchange,
    method: CacheableMethod,
    answer: Message,
    entry: Entry | undefined,
  ): ReadyAnswer | undefined {
    const hints = answer.kind === 'result' ? this.#readable(exchange, method, answer) : undefined;
    if (!hints) return undefined;
    const type = exchange.era === 'modern';
    const shared = entry !== undefined && entry.place === listCacheKey('', entry.serverId, 'public');
    const scope = type || this.#deps.hints === 'always' ? emittedScope(hints.scope, shared) : undefined;
    const ready = new ReadyAnswer(answer, hints, { scope, type });
    this.#ready.set(answer, ready);
    return ready;
  }

  #readable(exchange: Exchange, method: CacheableMethod, answer: Message): ResultHints | undefined {
    try {
      return this.read(exchange, method, answer);
    } catch (failure) {
      if (failure instanceof GatewayError) return undefined;
      throw failure;
    }
  }
}
