import type { Clock } from '../base/clock.js';
import type { Filter } from '../protocol/subscription-filter.js';
import type { Message } from '../wire/message.js';
import type { Link } from './link.js';
import { Overlap } from './listening-overlap.js';
import type { ServerListen } from './server-listen.js';

/** The stream that the server acknowledged last and, for a while, the one that it replaced. */
export class StandingListen {
  readonly #clock: Clock;
  #listen: ServerListen | undefined;
  #asked: Filter | undefined;
  #overlap: Overlap | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What the server was asked for; undefined while none stands. */
  get asked(): Filter | undefined {
    return this.#asked;
  }

  /** On one channel, what was sent before has come before; streams of their own have no order. */
  replace(listen: ServerListen, asked: Filter, kind: Link['kind']): void {
    const before = this.#listen;
    this.#endOverlap();
    this.#listen = listen;
    this.#asked = asked;
    if (!before) return;
    if (kind === 'http') this.#overlap = new Overlap(before, this.#clock, () => this.#endOverlap());
    else before.close();
  }

  /** Whether a message of one of these streams was not told by the other. Throws JsonError for ambiguous params. */
  isNews(listen: ServerListen, message: Message): boolean {
    const isNew = listen === this.#listen;
    if (!isNew && listen !== this.#overlap?.old) return false;
    return this.#overlap === undefined || this.#overlap.isNews(message, isNew ? 'new' : 'old');
  }

  /** Notes that a stream ended by itself; true if it is the one that stood. */
  ended(listen: ServerListen): boolean {
    if (listen === this.#overlap?.old) this.#endOverlap();
    if (listen !== this.#listen) return false;
    this.#listen = this.#asked = undefined;
    return true;
  }

  close(): void {
    this.#endOverlap();
    this.#listen?.close();
    this.#listen = this.#asked = undefined;
  }

  #endOverlap(): void {
    this.#overlap?.end();
    this.#overlap = undefined;
  }
}
