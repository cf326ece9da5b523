import type { ListKind } from '../protocol/methods.js';
import type { Message } from '../wire/message.js';

/** What an entry holds, or a fetch asks for: all that a purge can aim at. */
export interface Subject {
  readonly serverId: string;
  readonly kind: ListKind;
  /** The shared place of the server, or the private partition of a pool key. */
  readonly place: string;
  /** Store key of the first page of the same list at the same place. */
  readonly walk: string;
  /** What `resources/read` asked for; undefined for lists. */
  readonly uri: string | undefined;
}

/** One kept answer. Instants, never durations: an entry may outlive the process that wrote it. */
export interface Entry extends Subject {
  readonly key: string;
  /** The answer as it came, its id included. Undefined: the page is reserved, a kept page's `nextCursor` names it. */
  readonly message: Message | undefined;
  readonly receivedAt: number;
  /** End of the server's own TTL; undefined where it sent none and the operator's default decides at each look. */
  readonly freshUntil: number | undefined;
  /** What was doubted of the server when the answer was asked for. */
  readonly doubts: number;
}

/** Which entries are meant; plain data, so that any tier can translate it. */
export type Selection =
  | {
      readonly by: 'kind';
      readonly serverId: string;
      /** Empty: every kind. */
      readonly kinds: readonly ListKind[];
      /** Only one private partition, and what was appended to its name; nothing shared. */
      readonly poolKey: string | undefined;
    }
  | { readonly by: 'uri'; readonly serverId: string; readonly uri: string }
  | { readonly by: 'walk'; readonly serverId: string; readonly kind: ListKind; readonly walk: string };

/**
 * Where entries are kept. It decides nothing: no clock, no scope, no generation. It may lose an entry at any time and
 * may throw; both are a miss.
 */
export interface Store {
  lookup(key: string): Entry | undefined;
  /** Keeps the entry in place of an older one of the same key. One that does not fit leaves neither. */
  commit(entry: Entry): void;
  remove(key: string): void;
  select(selection: Selection): readonly Entry[];
  /** Returns how many answers were forgotten; reserved pages go uncounted. */
  forget(selection: Selection): number;
}
