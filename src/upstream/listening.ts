import { backoffMs } from '../base/backoff.js';
import type { Clock, Timer } from '../base/clock.js';
import type { Random } from '../base/random.js';
import type { ChangeBus } from '../pipeline/changes.js';
import type { EventSink } from '../pipeline/events.js';
import type { Exchange } from '../pipeline/exchange.js';
import { notification } from '../protocol/compose.js';
import { type ListKind, listChangedKind } from '../protocol/methods.js';
import {
  covers,
  type Filter,
  intersection,
  isEmpty,
  NOTHING,
  union,
  wantedFilter,
} from '../protocol/subscription-filter.js';
import type { Message } from '../wire/message.js';
import { AgentListen } from './agent-listen.js';
import type { Connection } from './connection.js';
import type { ServerFacts } from './handshake.js';
import { stringParam } from './rewrite.js';
import { ServerListen } from './server-listen.js';

const KINDS: readonly ListKind[] = ['tools', 'prompts', 'resources'];
const REOPEN = { baseMs: 1_000, maxMs: 30_000 };
/** A stream that stood this long was a good one, even if nothing was told on it. */
const GOOD_LIFE_MS = 10_000;

export interface ListeningDeps {
  readonly serverId: string;
  /** JSON text of the `_meta` of our own requests. */
  readonly meta: string;
  readonly connect: () => Promise<Connection>;
  readonly changes: ChangeBus;
  readonly clock: Clock;
  readonly random: Random;
  readonly emit: EventSink;
  readonly doubt: (serverId: string) => void;
}

/**
 * What is heard of changes at one modern server: one stream with everything that its agents, and the cache, want to hear
 * of, opened anew when that grows and when it was lost.
 */
export class Listening {
  readonly #deps: ListeningDeps;
  readonly #agents = new Set<AgentListen>();
  /** The cache keeps lists of this server. */
  #kept = false;
  #current: ServerListen | undefined;
  #opening: { readonly listen: ServerListen; readonly settle: (failure?: unknown) => void } | undefined;
  #reconciling: Promise<void> | undefined;
  /** The server answered that it has no such thing; until it is greeted anew. */
  #refused = false;
  /** Something may have been missed since the last stream stood. */
  #gap = false;
  #failures = 0;
  #openedAt = 0;
  #reopen: Timer | undefined;

  constructor(deps: ListeningDeps) {
    this.#deps = deps;
  }

  /** True while agents listen. */
  get wanted(): boolean {
    return this.#agents.size > 0;
  }

  /** Serves an agent's listen until the agent ends it. Rejects with GatewayError. */
  async serve(exchange: Exchange): Promise<Message> {
    const { serverId, clock } = this.#deps;
    const listen = new AgentListen(exchange, wantedFilter(exchange.message, serverId), clock);
    this.#agents.add(listen);
    try {
      await this.#reconcile();
      return await listen.begin(intersection(listen.wanted, this.#current?.honoured ?? NOTHING));
    } finally {
      this.#agents.delete(listen);
      listen.end();
      this.#shrink();
    }
  }

  /** A list was asked for: while it is kept, its changes are listened for. */
  keep(): void {
    if (this.#kept || this.#refused) return;
    this.#kept = true;
    this.#reconcile().catch(() => {});
  }

  /** Nobody uses the server at present. */
  rest(): void {
    this.#kept = false;
    this.#shrink();
  }

  /** A connection stands; after a loss what was listened for is listened for again. */
  connected(): void {
    this.#refused = false;
    if (this.#gap || this.wanted) this.#reconcile().catch(() => {});
  }

  close(): void {
    this.#kept = false;
    this.#reopen?.cancel();
    this.#current?.close();
    this.#current = undefined;
  }

  #union({ announces }: Pick<ServerFacts, 'announces'>): Filter {
    const announced: Filter = {
      kinds: new Set(KINDS.filter((kind) => kind !== 'discovery' && announces(kind))),
      uris: NOTHING.uris,
    };
    const asked = union([...this.#agents].map(({ wanted }) => wanted));
    const all = this.#kept ? union([asked, announced]) : asked;
    return { kinds: intersection(all, announced).kinds, uris: all.uris };
  }

  /** Settles when what the server is asked for covers what is wanted. Rejects where it cannot be asked. */
  #reconcile(): Promise<void> {
    this.#reconciling ??= this.#grow();
    return this.#reconciling;
  }

  async #grow(): Promise<void> {
    try {
      for (;;) {
        const connection = await this.#deps.connect();
        const wanted = this.#union(connection.facts);
        if (this.#refused || isEmpty(wanted)) return;
        if (this.#current && covers(this.#current.filter, wanted)) return;
        await this.#open(connection, wanted);
      }
    } finally {
      // At once: whoever comes next is not told that this run was for it too.
      this.#reconciling = undefined;
    }
  }

  /** Settles when the server acknowledged, or refused for good; rejects when it could not be asked. */
  #open(connection: Connection, filter: Filter): Promise<void> {
    this.#reopen?.cancel();
    return new Promise((resolve, reject) => {
      const listen = new ServerListen(filter);
      const settle = (failure?: unknown) => {
        this.#opening = undefined;
        if (failure === undefined) resolve();
        else reject(failure);
      };
      this.#opening = { listen, settle };
      listen.open(connection, {
        meta: this.#deps.meta,
        acknowledged: () => this.#acknowledged(listen),
        heard: (from, message) => {
          if (message.method === 'notifications/cancelled') this.#withdrawn(from);
          else if (from === this.#current) this.#heard(message);
        },
        ended: (from, answer, failure) => this.#ended(from, answer, failure),
      });
    });
  }

  /** From here on this stream is the one that counts: whatever follows on the old one comes on it too. */
  #acknowledged(listen: ServerListen): void {
    this.#current?.close();
    this.#current = listen;
    this.#openedAt = this.#deps.clock.now();
    if (this.#gap) this.#announceReturn();
    this.#opening?.settle();
  }

  /** Lists and resources may have changed unheard: forget first, then tell. */
  #announceReturn(): void {
    const { changes, serverId } = this.#deps;
    this.#gap = false;
    changes.publish({ serverId, reason: 'reinitialized', kinds: [] }, () => {
      for (const agent of this.#agents) {
        for (const kind of agent.honoured.kinds)
          agent.changed(kind, notification(`notifications/${kind}/list_changed`));
        for (const uri of agent.honoured.uris)
          agent.updated(uri, notification('notifications/resources/updated', { uri }));
      }
    });
  }

  #heard(message: Message): void {
    this.#failures = 0;
    const { changes, serverId } = this.#deps;
    const kind = listChangedKind(message.method);
    if (kind)
      return changes.publish({ serverId, reason: 'list_changed', kinds: [kind] }, () => {
        for (const agent of this.#agents) agent.changed(kind, message);
      });
    const uri =
      message.method === 'notifications/resources/updated' ? stringParam(message, 'uri') : undefined;
    if (uri !== undefined)
      return changes.publish({ serverId, reason: 'updated', kinds: ['resources'], uri }, () => {
        for (const agent of this.#agents) agent.updated(uri, message);
      });
    const why = 'nobody listens for it';
    this.#deps.emit({ type: 'message_dropped', serverId, method: message.method, why });
  }

  /** The server took the subscription back, without an answer. */
  #withdrawn(listen: ServerListen): void {
    listen.close();
    this.#ended(listen, undefined, undefined);
  }

  #ended(listen: ServerListen, answer: Message | undefined, failure: unknown): void {
    const opening = this.#opening?.listen === listen ? this.#opening : undefined;
    if (answer?.kind === 'error' && opening) {
      this.#refused = true;
      return opening.settle();
    }
    if (opening) opening.settle(failure ?? new Error('The subscription ended before it began'));
    if (this.#current !== listen) return;
    this.#current = undefined;
    this.#lost();
  }

  #lost(): void {
    const { clock, random, doubt, serverId } = this.#deps;
    this.#gap = true;
    doubt(serverId);
    if (clock.now() - this.#openedAt >= GOOD_LIFE_MS) this.#failures = 0;
    this.#reopen?.cancel();
    if (!this.#kept && !this.wanted) return;
    const delayMs = backoffMs(++this.#failures, REOPEN, random);
    this.#reopen = clock.after(delayMs, () => {
      this.#reconcile().catch(() => this.#lost());
    });
  }

  #shrink(): void {
    if (this.wanted || this.#kept) return;
    this.#reopen?.cancel();
    this.#current?.close();
    this.#current = undefined;
  }
}
