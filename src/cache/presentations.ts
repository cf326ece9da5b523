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

/** What was found out about one answer. */
interface Known {
  readonly hints: ResultHints;
  kept: Kept | undefined;
  /** Prepared once, however often the answer leaves. */
  ready: ReadyAnswer | undefined;
}

/**
 * How cacheable answers leave: with the time that remains of them and the strictest scope, to agents of a revision that
 * knows these, and without to others. A miss and a hit differ in nothing but the id and that time.
 * https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching
 */
export class Presentations {
  readonly #deps: PresentationDeps;
  readonly #known = new WeakMap<Message, Known>();

  constructor(deps: PresentationDeps) {
    this.#deps = deps;
  }

  /** `readHints` of an answer, which is read once. */
  read(exchange: Exchange, method: CacheableMethod, answer: Message): ResultHints | undefined {
    return this.#understood(exchange, method, answer)?.hints;
  }

  /** An answer that was read is kept, in these bytes or in equal ones: what leaves of it from now on is told so. */
  kept(answer: Message, kept: Kept): void {
    const known = this.#known.get(answer);
    if (!known) return;
    known.kept = kept;
    if (kept.message !== answer) this.#known.set(kept.message, known);
  }

  /** A kept answer; `doubted`: it is served because its server cannot be asked. */
  hit(exchange: Exchange, method: CacheableMethod, { entry, message }: Kept, doubted: boolean): Message {
    const { clock, rules } = this.#deps;
    const ready = this.#readyOf(exchange, method, message, entry);
    if (!ready) return message;
    const tells = ready.isTimed && !doubted;
    const remainingMs = tells ? remainingTtlMs(freshUntil(entry, rules), clock.now()) : 0;
    return ready.leave(exchange.message.id, remainingMs);
  }

  /** An answer that has just come. */
  fetched(exchange: Exchange, method: CacheableMethod, answer: Message): Message {
    const kept = this.#known.get(answer)?.kept;
    if (kept) return this.hit(exchange, method, kept, false);
    return this.#readyOf(exchange, method, answer, undefined)?.leave(exchange.message.id, 0) ?? answer;
  }

  /** An answer that the cache had nothing to do with: its server's own time is told, within our bound. */
  passed(exchange: Exchange, method: CacheableMethod, answer: Message): Message {
    const ready = this.#readyOf(exchange, method, answer, undefined);
    if (!ready) return answer;
    const own = toolListTtlMs(this.#known.get(answer)?.hints.ttlMs, 0, this.#deps.rules.maxTtlMs);
    return ready.leave(exchange.message.id, Math.floor(own));
  }

  /** Undefined for what is not complete, or cannot be read: that leaves as it came. */
  #readyOf(
    exchange: Exchange,
    method: CacheableMethod,
    answer: Message,
    entry: Entry | undefined,
  ): ReadyAnswer | undefined {
    const known = this.#known.get(answer) ?? this.#readable(exchange, method, answer);
    if (known) known.ready ??= this.#prepared(exchange, answer, known.hints, entry);
    return known?.ready;
  }

  #prepared({ era }: Exchange, answer: Message, hints: ResultHints, entry: Entry | undefined): ReadyAnswer {
    const type = era === 'modern';
    const shared = entry !== undefined && entry.place === listCacheKey('', entry.serverId, 'public');
    const scope = type || this.#deps.hints === 'always' ? emittedScope(hints.scope, shared) : undefined;
    return new ReadyAnswer(answer, hints, { scope, type });
  }

  #understood({ serverId, message }: Exchange, method: CacheableMethod, answer: Message): Known | undefined {
    const known = this.#known.get(answer);
    if (known) return known;
    const hints = readHints(serverId, message.method, method, answer);
    if (!hints) return undefined;
    const first = { hints, kept: undefined, ready: undefined };
    this.#known.set(answer, first);
    return first;
  }

  #readable(exchange: Exchange, method: CacheableMethod, answer: Message): Known | undefined {
    if (answer.kind !== 'result') return undefined;
    try {
      return this.#understood(exchange, method, answer);
    } catch (failure) {
      if (failure instanceof GatewayError) return undefined;
      throw failure;
    }
  }
}
