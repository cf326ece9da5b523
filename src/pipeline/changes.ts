import type { ListKind } from '../protocol/methods.js';

export type ChangeReason =
  /** The server said so. */
  | 'list_changed'
  /** One resource was updated. */
  | 'updated'
  /** A call was refused for a tool that the cached list shows. */
  | 'contradicted'
  /** The server began a new session: what it offers may be different. */
  | 'reinitialized'
  /** The operator or the library's user closed the server or one of its connections. */
  | 'closed';

/** Something known of a server became wrong. */
export interface Change {
  readonly serverId: string;
  readonly reason: ChangeReason;
  /** Empty: every kind. */
  readonly kinds: readonly ListKind[];
  /** Only what was read under this uri (`updated`). */
  readonly uri?: string;
  /** Only what one pool key's partition holds (`closed`). */
  readonly poolKey?: string;
}

/** Where news of a server meets: whatever remembers the old state forgets it before any agent is told. */
export class ChangeBus {
  readonly #forgetters: ((change: Change) => void)[] = [];

  /** `forget` must be synchronous: the next listing may come with the next message. */
  onChange(forget: (change: Change) => void): void {
    this.#forgetters.push(forget);
  }

  publish(change: Change, tellAgents: () => void = () => {}): void {
    for (const forget of this.#forgetters) forget(change);
    tellAgents();
  }
}
