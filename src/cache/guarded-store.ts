import { messageOf } from '../base/errors.js';
import type { EventSink } from '../pipeline/events.js';
import type { Store } from './store.js';

/** A store whose failures are events and misses: no agent fails because something could not be kept. */
export function guardedStore(store: Store, emit: EventSink): Store {
  const attempt = <T>(work: () => T, otherwise: T): T => {
    try {
      return work();
    } catch (error) {
      emit({ type: 'warning', message: `The store of the list cache failed: ${messageOf(error)}` });
      return otherwise;
    }
  };
  return {
    lookup: (key) => attempt(() => store.lookup(key), undefined),
    commit: (entry) => attempt(() => store.commit(entry), undefined),
    remove: (key) => attempt(() => store.remove(key), undefined),
    select: (selection) => attempt(() => store.select(selection), []),
    forget: (selection) => attempt(() => store.forget(selection), 0),
  };
}
