import { selects } from './selection.js';
import type { Selection, Subject } from './store.js';

/**
 * The right of one fetch to write what it brings, taken before it asks. It ends when a purge touches what was asked
 * for, and shrinks when a fetch that asked later has written first.
 */
export class Generation {
  readonly subject: Subject;
  /** The list asked for, whoever asks: its key at the server's shared place. */
  readonly sharedKey: string;
  /** Of two fetches the later one has the higher number. */
  readonly order: number;
  #current = true;
  #mayShare = true;

  constructor(subject: Subject, sharedKey: string, order: number) {
    this.subject = subject;
    this.sharedKey = sharedKey;
    this.order = order;
  }

  /** False once a purge, or a later answer of the same partition, came between. */
  get current(): boolean {
    return this.#current;
  }

  /** False once a later answer has decided what the shared place holds. */
  get mayShare(): boolean {
    return this.#current && this.#mayShare;
  }

  revoke(): void {
    this.#current = false;
  }

  keepPrivate(): void {
    this.#mayShare = false;
  }
}

/** The generations of all fetches under way. Holds nothing of a fetch that has ended. */
export class Generations {
  readonly #running = new Map<string, Set<Generation>>();
  #order = 0;

  begin(subject: Subject, sharedKey: string): Generation {
    const generation = new Generation(subject, sharedKey, ++this.#order);
    const running = this.#running.get(subject.serverId);
    if (running) running.add(generation);
    else this.#running.set(subject.serverId, new Set([generation]));
    return generation;
  }

  end(generation: Generation): void {
    const { serverId } = generation.subject;
    const running = this.#running.get(serverId);
    running?.delete(generation);
    if (running?.size === 0) this.#running.delete(serverId);
  }

  /** A purge: no fetch of the selection that is under way may write its answer. */
  bump(selection: Selection): void {
    for (const generation of this.#running.get(selection.serverId) ?? [])
      if (selects(selection, generation.subject)) generation.revoke();
  }

  /** An answer was written: those asked for earlier must not replace it when they come in. */
  overtake(by: Generation): void {
    for (const earlier of this.#running.get(by.subject.serverId) ?? []) {
      if (earlier.order >= by.order || earlier.sharedKey !== by.sharedKey) continue;
      if (earlier.subject.place === by.subject.place) earlier.revoke();
      else earlier.keepPrivate();
    }
  }
}
