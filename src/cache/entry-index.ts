import type { ListKind } from '../protocol/methods.js';
import type { Selection, Subject } from './store.js';

const KINDS: readonly ListKind[] = ['tools', 'prompts', 'resources', 'discovery'];

/**
 * Store keys by what purges aim at, so that a purge costs what it removes and not what is kept: a server that sends
 * one notification after the other finds its groups empty.
 */
export class EntryIndex {
  readonly #groups = new Map<string, Set<string>>();

  add(key: string, subject: Subject): void {
    for (const name of groupsOf(subject)) {
      const group = this.#groups.get(name);
      if (group) group.add(key);
      else this.#groups.set(name, new Set([key]));
    }
  }

  delete(key: string, subject: Subject): void {
    for (const name of groupsOf(subject)) {
      const group = this.#groups.get(name);
      group?.delete(key);
      if (group?.size === 0) this.#groups.delete(name);
    }
  }

  /** Keys among which all entries of a selection are. */
  candidates(selection: Selection): string[] {
    return groupsFor(selection).flatMap((name) => [...(this.#groups.get(name) ?? [])]);
  }
}

function groupsOf({ serverId, kind, uri, walk }: Subject): string[] {
  return [kindGroup(serverId, kind), uri === undefined ? walkGroup(walk) : uriGroup(serverId, uri)];
}

function groupsFor(selection: Selection): string[] {
  switch (selection.by) {
    case 'uri':
      return [uriGroup(selection.serverId, selection.uri)];
    case 'walk':
      return [walkGroup(selection.walk)];
    case 'kind': {
      const kinds = selection.kinds.length === 0 ? KINDS : selection.kinds;
      return kinds.map((kind) => kindGroup(selection.serverId, kind));
    }
  }
}

function kindGroup(serverId: string, kind: ListKind): string {
  return `kind ${kind} ${serverId}`;
}

function walkGroup(walk: string): string {
  return `walk ${walk}`;
}

function uriGroup(serverId: string, uri: string): string {
  return `uri ${serverId}\n${uri}`;
}
