import type { Message } from '../wire/message.js';

/** Sends a request of the bridge's own to the server. */
type Ask = (method: string, params: object) => Promise<Message>;

/** A resource that the server is, or was, asked to tell of. */
interface Watched {
  users: number;
  /** Whether the server agreed. */
  readonly agreed: Promise<boolean>;
}

export interface Watching {
  /** Whether the server agreed. Rejects with GatewayError. */
  readonly agreed: Promise<boolean>;
  /** Nobody hears of it any more, so far as this one is concerned. */
  readonly end: () => void;
}

/**
 * The resources that all subscriptions of one agent are about. The server has one subscription for each, from the first
 * that asks for it to the last that ends; also one that it agrees to when nobody is left, is ended.
 */
export class WatchedResources {
  readonly #watched = new Map<string, Watched>();

  watch(uri: string, ask: Ask): Watching {
    const watched = this.#watched.get(uri) ?? this.#begin(uri, ask);
    watched.users++;
    return { agreed: watched.agreed, end: () => this.#end(uri, watched, ask) };
  }

  #begin(uri: string, ask: Ask): Watched {
    const agreed = ask('resources/subscribe', { uri }).then(({ kind }) => kind === 'result');
    const watched: Watched = { users: 0, agreed };
    this.#watched.set(uri, watched);
    const forget = () => this.#forget(uri, watched);
    agreed.then((isAgreed) => isAgreed || forget(), forget);
    return watched;
  }

  #end(uri: string, watched: Watched, ask: Ask): void {
    if (--watched.users > 0) return;
    this.#forget(uri, watched);
    const unsubscribe = async () => {
      if ((await watched.agreed) && !this.#watched.has(uri)) await ask('resources/unsubscribe', { uri });
    };
    // Whatever goes wrong, nobody hears of the resource any more.
    unsubscribe().catch(() => {});
  }

  #forget(uri: string, watched: Watched): void {
    if (this.#watched.get(uri) === watched) this.#watched.delete(uri);
  }
}
