import type { Change } from '../pipeline/changes.js';
import { poolKeyMatches } from '../protocol/pool-key.js';
import type { Selection, Subject } from './store.js';

/** What a change makes wrong. */
export function selectionOf({ serverId, kinds, uri, poolKey }: Change): Selection {
  return uri === undefined ? { by: 'kind', serverId, kinds, poolKey } : { by: 'uri', serverId, uri };
}

export function selects(selection: Selection, subject: Subject): boolean {
  if (selection.serverId !== subject.serverId) return false;
  switch (selection.by) {
    case 'uri':
      return subject.uri === selection.uri;
    case 'walk':
      return subject.walk === selection.walk;
    case 'kind':
      return (
        (selection.kinds.length === 0 || selection.kinds.includes(subject.kind)) &&
        (selection.poolKey === undefined || isPartition(subject, selection.poolKey))
      );
  }
}

/** A server id is the pool key of callers without a token, and then names no partition but theirs. */
function isPartition({ serverId, place }: Subject, poolKey: string): boolean {
  return poolKey === serverId ? place === poolKey : poolKeyMatches(place, poolKey);
}
