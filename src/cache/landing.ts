import type { Clock } from '../base/clock.js';
import { INVALID_PARAMS } from '../protocol/codes.js';
import { toolListTtlMs } from '../protocol/hints.js';
import { errorCodeOf } from '../wire/error-code.js';
import type { Message } from '../wire/message.js';
import type { TtlRules } from './freshness.js';
import type { Generation, Generations } from './generations.js';
import { FIRST_PAGE, variantNamed } from './list-key.js';
import type { ListRequest, Spot } from './list-request.js';
import type { Presentations } from './presentations.js';
import type { ResultHints } from './result-hints.js';
import type { Entry, Store } from './store.js';

export interface LandingDeps {
  readonly clock: Clock;
  readonly store: Store;
  readonly generations: Generations;
  readonly rules: TtlRules;
  readonly presentations: Presentations;
  /** Whether the operator lets a server's `public` lists be shared; undefined: those fetched without a token. */
  readonly sharePublic: (serverId: string) => boolean | undefined;
}

/** A fetch whose answer has come. */
export interface Landing {
  readonly request: ListRequest;
  readonly generation: Generation;
  /** What was doubted of the server when it was asked. */
  readonly doubts: number;
  readonly answer: Message;
}

/**
 * Writes down what an answer says, as far as its generation still permits: the answer itself, or that there is none to
 * keep any more. Throws GatewayError `server_protocol` for a result that is no list.
 */
export function land(landing: Landing, deps: LandingDeps): void {
  const { request, generation, answer } = landing;
  if (answer.kind === 'error') return forgetWalk(request, answer, deps.store);
  const hints = deps.presentations.read(request.exchange, request.method, answer);
  if (!hints || !generation.current || !isKnownPage(request, deps.store)) return;
  deps.generations.overtake(generation);
  const share = hints.scope === 'public' && maySharePublic(request, deps);
  if (share && !generation.mayShare) return;
  const [spot, other] = share ? [request.shared, request.own] : [request.own, request.shared];
  if (generation.mayShare || other === request.own) drop(request, other, deps.store);
  keep(spot, hints, landing, deps);
}

/** A refused cursor makes every page of its walk worthless: the next listing begins anew. */
function forgetWalk(request: ListRequest, answer: Message, store: Store): void {
  if (!isLaterPage(request) || errorCodeOf(answer) !== INVALID_PARAMS) return;
  for (const { serverId, kind, walk } of [request.own, request.shared])
    store.forget({ by: 'walk', serverId, kind, walk });
}

/**
 * Whether a kept page issued the cursor that was asked for. After a purge in mid-walk none did, so that later pages of
 * the old walk are not kept beside the first page of the next.
 */
function isKnownPage(request: ListRequest, store: Store): boolean {
  if (!isLaterPage(request)) return true;
  return [request.own, request.shared].some(({ key }) => store.lookup(key) !== undefined);
}

function isLaterPage({ method, variant }: ListRequest): boolean {
  return variant !== FIRST_PAGE && method.list !== undefined;
}

/** Removes an older answer; that its cursor was issued stays known. */
function drop(request: ListRequest, { key }: Spot, store: Store): void {
  const entry = isLaterPage(request) ? store.lookup(key) : undefined;
  if (entry) store.commit({ ...entry, message: undefined });
  else store.remove(key);
}

function maySharePublic({ exchange }: ListRequest, { sharePublic }: LandingDeps): boolean {
  return sharePublic(exchange.serverId) ?? exchange.caller.tokenHash === undefined;
}

function keep(
  spot: Spot,
  hints: ResultHints,
  { request, doubts, answer }: Landing,
  { store, clock, rules, presentations }: LandingDeps,
): void {
  const { ttlMs, nextCursor } = hints;
  const wanted = request.method.onlyWithTtl ? (ttlMs ?? 0) : ttlMs;
  const keptMs = toolListTtlMs(wanted, rules.defaultTtlMs(spot.serverId), rules.maxTtlMs);
  if (keptMs === 0) return drop(request, spot, store);
  const receivedAt = clock.now();
  const freshUntil = wanted === undefined ? undefined : receivedAt + keptMs;
  const entry: Entry = { ...spot, message: answer, receivedAt, freshUntil, doubts };
  store.commit(entry);
  const message = store.lookup(entry.key)?.message;
  if (message) presentations.kept(answer, { entry, message });
  if (nextCursor !== undefined) reserve(entry, nextCursor, store);
}

/** Lets the page behind a kept one be kept too. */
function reserve(page: Entry, cursor: string, store: Store): void {
  const key = page.walk + variantNamed(cursor);
  if (store.lookup(key) === undefined) store.commit({ ...page, key, message: undefined });
}
