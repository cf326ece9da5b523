import { METHOD_NOT_FOUND } from '../protocol/codes.js';
import type { ListKind } from '../protocol/methods.js';
import { type Filter, NOTHING } from '../protocol/subscription-filter.js';
import { member } from '../wire/json.js';
import type { ServerFacts } from './handshake.js';

const KINDS = ['tools', 'prompts', 'resources'] as const;

/** What a server can be asked to tell of: what it announces, less what it refused since it was greeted. */
export class Offer {
  #facts: ServerFacts | undefined;
  #kinds: ReadonlySet<ListKind> = NOTHING.kinds;
  #tellsOfResources = false;
  #refusedAll = false;
  readonly #refusedUris = new Set<string>();

  /** The lists that the server tells changes of. */
  get kinds(): ReadonlySet<ListKind> {
    return this.#kinds;
  }

  /** A connection's facts: those of another one than before are a new start. */
  learn(facts: ServerFacts): void {
    if (facts === this.#facts) return;
    this.#facts = facts;
    this.#kinds = new Set(KINDS.filter((kind) => facts.announces(kind)));
    this.#tellsOfResources = announcesSubscribe(facts);
    this.#refusedAll = false;
    this.#refusedUris.clear();
  }

  /**
   * A subscription was refused, with an error of this code or with none. A resource that nobody asked for before may be
   * the reason, and must not cost the others what they have.
   */
  refuse(asked: Filter, before: Filter, code: number | undefined): void {
    const added = [...asked.uris].filter((uri) => !before.uris.has(uri));
    if (code === METHOD_NOT_FOUND || added.length === 0) this.#refusedAll = true;
    else for (const uri of added) this.#refusedUris.add(uri);
  }

  /** The part of it that the server may be asked for. */
  of({ kinds, uris }: Filter): Filter {
    if (this.#refusedAll) return NOTHING;
    const asksUris = this.#tellsOfResources && uris.size > 0;
    return {
      kinds: new Set([...kinds].filter((kind) => this.#kinds.has(kind))),
      uris: asksUris ? new Set([...uris].filter((uri) => !this.#refusedUris.has(uri))) : NOTHING.uris,
    };
  }

  /** Forgets refusals of what nobody wants any more. */
  prune({ uris }: Filter): void {
    for (const uri of this.#refusedUris) if (!uris.has(uri)) this.#refusedUris.delete(uri);
  }
}

function announcesSubscribe({ answer: { bytes, body } }: ServerFacts): boolean {
  const span = body && member(bytes, body.start, 'capabilities', 'resources', 'subscribe');
  return span !== undefined && bytes.toString('latin1', span.start, span.end) === 'true';
}
