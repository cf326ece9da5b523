import { LRUCache } from 'lru-cache';
import type { Message } from '../wire/message.js';
import { EntryIndex } from './entry-index.js';
import { selects } from './selection.js';
import type { Entry, Selection, Store } from './store.js';

/** What an entry costs besides its bytes and its key: objects, spans, its places in the indices. */
const OVERHEAD_BYTES = 1_024;

export interface MemoryOptions {
  /** Of answers, keys and the records around them. */
  readonly maxBytes: number;
  readonly maxEntries: number;
}

/** Keeps entries in this process; the one used longest ago makes room. */
export function memoryStore({ maxBytes, maxEntries }: MemoryOptions): Store {
  const index = new EntryIndex();
  const entries = new LRUCache<string, Entry>({
    max: maxEntries,
    maxSize: maxBytes,
    sizeCalculation: sizeOf,
    dispose: (entry, key) => index.delete(key, entry),
  });
  const select = (selection: Selection): Entry[] =>
    index
      .candidates(selection)
      .map((key) => entries.peek(key))
      .filter((entry) => entry !== undefined && selects(selection, entry)) as Entry[];
  return {
    lookup: (key) => entries.get(key),
    commit: (entry) => {
      entries.set(entry.key, entry.message ? { ...entry, message: owned(entry.message) } : entry);
      if (entries.has(entry.key)) index.add(entry.key, entry);
    },
    remove: (key) => void entries.delete(key),
    select,
    forget: (selection) => {
      const found = select(selection);
      for (const { key } of found) entries.delete(key);
      return found.filter(({ message }) => message !== undefined).length;
    },
  };
}

function sizeOf({ key, walk, message }: Entry): number {
  return (message?.bytes.length ?? 0) + 2 * (key.length + walk.length) + OVERHEAD_BYTES;
}

/** A message that keeps no larger buffer alive than its own: what is read from a socket is a slice of a chunk. */
function owned(message: Message): Message {
  const { bytes } = message;
  if (bytes.buffer.byteLength === bytes.length) return message;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return { ...message, bytes: own };
}
