import { BoundedMap } from '../base/bounded-map.js';
import type { Clock, Timer } from '../base/clock.js';
import type { Message } from '../wire/message.js';
import { stringParam } from './rewrite.js';
import type { ServerListen } from './server-listen.js';

/** How long a stream is still read that another one replaced: what the server sent before may be on its way. */
const OVERLAP_MS = 1_000;
const MAX_URIS = 10_000;

/**
 * The time in which one stream replaces another and both are read, since over HTTP nothing orders the two. Tells news
 * from what the other stream told already: an update counts where it is told first, a changed list may be told twice.
 */
export class Overlap {
  readonly old: ServerListen;
  readonly #told = new BoundedMap<string, { new: number; old: number }>(MAX_URIS);
  readonly #timer: Timer;

  /** `over` is called when it has lasted long enough. */
  constructor(old: ServerListen, clock: Clock, over: () => void) {
    this.old = old;
    this.#timer = clock.after(OVERLAP_MS, over);
  }

  end(): void {
    this.#timer.cancel();
    this.old.close();
  }

  /** Throws JsonError for params that are ambiguous. */
  isNews(message: Message, stream: 'new' | 'old'): boolean {
    if (message.method !== 'notifications/resources/updated') return true;
    const uri = stringParam(message, 'uri');
    if (uri === undefined) return true;
    const told = this.#told.get(uri) ?? { new: 0, old: 0 };
    const soFar = Math.max(told.new, told.old);
    told[stream]++;
    this.#told.set(uri, told);
    return told[stream] > soFar;
  }
}
