import type { Exchange } from '../pipeline/exchange.js';
import type { CacheableMethod } from '../protocol/methods.js';
import { listCacheKey } from '../protocol/pool-key.js';
import { nameOf, walkKey } from './list-key.js';
import type { Subject } from './store.js';

/** A listing as the cache sees it: which entry would answer it, at either of two places. */
export interface ListRequest {
  readonly exchange: Exchange;
  readonly method: CacheableMethod;
  readonly variant: string;
  readonly shared: Spot;
  readonly own: Spot;
}

/** One entry's place in the store. */
export interface Spot extends Subject {
  readonly key: string;
}

/** `partition` is the name of the private partition that the exchange belongs to. */
export function listRequest(
  exchange: Exchange,
  method: CacheableMethod,
  variant: string,
  partition: string,
): ListRequest {
  const spotAt = (place: string): Spot => {
    const walk = walkKey(exchange, exchange.message.method, place);
    const uri = method.params.includes('uri') ? nameOf(variant) : undefined;
    return { serverId: exchange.serverId, kind: method.kind, place, walk, uri, key: walk + variant };
  };
  const shared = spotAt(listCacheKey(partition, exchange.serverId, 'public'));
  return { exchange, method, variant, shared, own: spotAt(partition) };
}
