import type { Clock } from '../base/clock.js';
import type { ChangeBus } from '../pipeline/changes.js';
import type { Exchange } from '../pipeline/exchange.js';
import { HEADER_MISMATCH, INVALID_PARAMS, METHOD_NOT_FOUND } from '../protocol/codes.js';
import { listCacheKey } from '../protocol/pool-key.js';
import { errorCodeOf } from '../wire/error-code.js';
import { items, JsonError, member, stringAt } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import { isFresh, type TtlRules } from './freshness.js';
import { walkKey } from './list-key.js';
import type { Store } from './store.js';

/** Least time between two purges of one server for this reason: an agent's own mistakes look the same. */
const INTERVAL_MS = 60_000;
/** No such tool, another schema than was listed, or one that mirrors other arguments in headers. */
const CONTRADICTING: ReadonlySet<number | undefined> = new Set([
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  HEADER_MISMATCH,
]);
const QUOTE = 0x22;

export interface ContradictionDeps {
  readonly clock: Clock;
  readonly store: Store;
  readonly changes: ChangeBus;
  readonly rules: TtlRules;
}

/** Notices that a server refuses a call for a tool which the list kept for that caller shows, and purges the list. */
export class Contradictions {
  readonly #deps: ContradictionDeps;
  readonly #purgedAt = new Map<string, number>();

  constructor(deps: ContradictionDeps) {
    this.#deps = deps;
  }

  /** `partition` is the private partition that the call belongs to. */
  check(call: Exchange, answer: Message, partition: string): void {
    if (!CONTRADICTING.has(errorCodeOf(answer))) return;
    const { serverId } = call;
    const { clock, changes } = this.#deps;
    const now = clock.now();
    if (now < (this.#purgedAt.get(serverId) ?? Number.NEGATIVE_INFINITY) + INTERVAL_MS) return;
    const shared = listCacheKey(partition, serverId, 'public');
    const place = [shared, partition].find((at) => this.#shows(call, at, now));
    if (place === undefined) return;
    this.#purgedAt.set(serverId, now);
    const scope = place === shared ? {} : { poolKey: partition };
    changes.publish({ serverId, reason: 'contradicted', kinds: ['tools'], ...scope });
  }

  #shows(call: Exchange, place: string, now: number): boolean {
    const name = toolCalled(call.message);
    if (name === undefined) return false;
    const walk = walkKey(call, 'tools/list', place);
    const pages = this.#deps.store.select({ by: 'walk', serverId: call.serverId, kind: 'tools', walk });
    return pages.some(
      (page) => page.message && isFresh(page, now, this.#deps.rules) && hasTool(page.message, name),
    );
  }
}

function toolCalled({ bytes, params }: Message): string | undefined {
  return params && textOf(bytes, params.start, 'name');
}

function hasTool({ bytes, body }: Message, name: string): boolean {
  const tools = body && member(bytes, body.start, 'tools');
  const listed = tools && items(bytes, tools.start);
  return listed?.some(({ start }) => textOf(bytes, start, 'name') === name) ?? false;
}

/** A string member of the object at `at`; undefined for whatever is malformed. */
function textOf(bytes: Buffer, at: number, name: string): string | undefined {
  try {
    const span = member(bytes, at, name);
    return span && bytes[span.start] === QUOTE ? stringAt(bytes, span.start, span.end) : undefined;
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}
