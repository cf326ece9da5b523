import type { Clock } from '../base/clock.js';
import { GatewayError, type GatewayErrorCode } from '../base/errors.js';
import type { Change, ChangeBus } from '../pipeline/changes.js';
import type { EventSink, GatewayEvent } from '../pipeline/events.js';
import type { Agent, Caller, Exchange, Handler, Layer } from '../pipeline/exchange.js';
import { type CacheableMethod, cacheableMethod, mayAskForInput } from '../protocol/methods.js';
import { listCacheKey } from '../protocol/pool-key.js';
import { JsonError, member } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import { Contradictions } from './contradictions.js';
import type { Doubts } from './doubts.js';
import { cancelled } from './flight.js';
import { Flights } from './flights.js';
import { isFresh, type TtlRules } from './freshness.js';
import { Generations } from './generations.js';
import { guardedStore } from './guarded-store.js';
import { ListFetch, type ListFetchDeps } from './list-fetch.js';
import { variantOf, walkKey } from './list-key.js';
import { listRequest } from './list-request.js';
import { type Kept, Presentations } from './presentations.js';
import { selectionOf } from './selection.js';
import type { Entry, Store } from './store.js';

export interface CacheDeps {
  readonly clock: Clock;
  readonly store: Store;
  readonly changes: ChangeBus;
  readonly doubts: Doubts;
  readonly emit: EventSink;
  readonly rules: TtlRules;
  /** Who is told `ttlMs` and `cacheScope`. */
  readonly hints: 'modern' | 'always';
  /** Whether the operator lets a server's `public` lists be shared; undefined: those fetched without a token. */
  readonly sharePublic: (serverId: string) => boolean | undefined;
  /** Name of the private partition of a caller: a pool key. Pure, and called for every listing. */
  readonly partitionOf: (serverId: string, agent: Agent, caller: Caller) => string;
}

/** Failures after which a list that is only doubted is better than none. */
const UNREACHABLE: ReadonlySet<GatewayErrorCode> = new Set<GatewayErrorCode>([
  'server_unavailable',
  'server_timeout',
  'session_lost',
  'outcome_unknown',
]);

/** Answers lists from what is kept of earlier answers, in the bytes of the first one but for id and hints. */
export function cacheLayer(deps: CacheDeps): Layer {
  const cache = new ListCache(deps);
  return (exchange, next) => {
    const { method } = exchange.message;
    const cacheable = cacheableMethod(method);
    if (cacheable) return cache.list(exchange, cacheable, next);
    return method === 'tools/call' ? cache.call(exchange, next) : next(exchange);
  };
}

class ListCache {
  readonly #deps: CacheDeps & ListFetchDeps;
  readonly #flights = new Flights();
  readonly #contradictions: Contradictions;

  constructor(given: CacheDeps) {
    const store = guardedStore(given.store, given.emit);
    const presentations = new Presentations(given);
    this.#deps = { ...given, store, presentations, generations: new Generations() };
    this.#contradictions = new Contradictions(this.#deps);
    given.changes.onChange((change) => this.#purge(change));
  }

  async list(exchange: Exchange, method: CacheableMethod, next: Handler): Promise<Message> {
    const variant = variantOf(exchange.message, method);
    const { presentations } = this.#deps;
    if (variant === undefined) return presentations.passed(exchange, method, await next(exchange));
    const partition = this.#deps.partitionOf(exchange.serverId, exchange.agent, exchange.caller);
    const kept = exchange.fresh ? undefined : this.#kept(exchange, variant, partition, false);
    if (!kept) return this.#fetch(exchange, method, variant, partition, next);
    this.#report(exchange, 'hit');
    return presentations.hit(exchange, method, kept, false);
  }

  async call(exchange: Exchange, next: Handler): Promise<Message> {
    const partition = this.#deps.partitionOf(exchange.serverId, exchange.agent, exchange.caller);
    const answer = await next(exchange);
    this.#contradictions.check(exchange, answer, partition);
    return answer;
  }

  /** The answer that a caller may be given from the cache, if any. */
  #kept(exchange: Exchange, variant: string, partition: string, doubted: boolean): Kept | undefined {
    const { store, sharePublic } = this.#deps;
    const { serverId, message } = exchange;
    const usable = (place: string): Kept | undefined => {
      const entry = store.lookup(walkKey(exchange, message.method, place) + variant);
      if (!entry?.message || !this.#isUsable(entry, doubted)) return undefined;
      return { entry, message: entry.message };
    };
    const shared = usable(listCacheKey(partition, serverId, 'public'));
    return shared && sharePublic(serverId) !== false ? shared : usable(partition);
  }

  #isUsable(entry: Entry, doubted: boolean): boolean {
    const { doubts, clock, rules } = this.#deps;
    return (doubted || entry.doubts === doubts.count(entry.serverId)) && isFresh(entry, clock.now(), rules);
  }

  async #fetch(
    exchange: Exchange,
    method: CacheableMethod,
    variant: string,
    partition: string,
    next: Handler,
  ): Promise<Message> {
    if (exchange.signal.aborted) throw cancelled(exchange);
    const request = listRequest(exchange, method, variant, partition);
    let outcome: Outcome = 'collapsed';
    const answer = this.#flights.board(laneOf(request.own.key, exchange), exchange, () => {
      outcome = exchange.fresh ? 'fresh' : 'miss';
      return new ListFetch(request, next, this.#deps);
    });
    this.#report(exchange, outcome);
    try {
      const come = await answer;
      // What a server asks first, it asks of one agent: the others ask for themselves.
      if (outcome === 'collapsed' && isQuestion(come)) return await this.#own(exchange, method, next);
      return this.#deps.presentations.fetched(exchange, method, come);
    } catch (failure) {
      const unreachable = failure instanceof GatewayError && UNREACHABLE.has(failure.code);
      const kept =
        unreachable && !exchange.fresh ? this.#kept(exchange, variant, partition, true) : undefined;
      if (kept) return this.#deps.presentations.hit(exchange, method, kept, true);
      throw failure;
    }
  }

  async #own(exchange: Exchange, method: CacheableMethod, next: Handler): Promise<Message> {
    return this.#deps.presentations.passed(exchange, method, await next(exchange));
  }

  /** Fetches under way first: none of them may bring back what is forgotten here. */
  #purge(change: Change): void {
    const { generations, store, emit } = this.#deps;
    const selection = selectionOf(change);
    generations.bump(selection);
    const entries = store.forget(selection);
    const { serverId, reason } = change;
    if (entries > 0) emit({ type: 'cache_purged', serverId, reason, entries });
  }

  #report({ serverId, message }: Exchange, outcome: Outcome): void {
    this.#deps.emit({ type: 'cache_outcome', serverId, method: message.method, outcome });
  }
}

/** Which fetches are one: what may be answered by way of questions is each agent's own. */
function laneOf(key: string, { message, agent }: Exchange): string {
  return mayAskForInput(message.method) ? `${key}\n${agent.id}` : key;
}

/** Whether an answer is none yet: its agent is to bring something first. */
function isQuestion({ kind, bytes, body }: Message): boolean {
  if (kind !== 'result' || !body) return false;
  try {
    const type = member(bytes, body.start, 'resultType');
    return type !== undefined && bytes.toString('utf8', type.start, type.end) !== '"complete"';
  } catch (error) {
    if (error instanceof JsonError) return false;
    throw error;
  }
}

type Outcome = Extract<GatewayEvent, { type: 'cache_outcome' }>['outcome'];
