import type { Clock } from '../base/clock.js';
import type { Random } from '../base/random.js';
import type { ChangeBus } from '../pipeline/changes.js';
import type { EventSink } from '../pipeline/events.js';
import type { Exchange } from '../pipeline/exchange.js';
import { notification } from '../protocol/compose.js';
import { type ListKind, listChangedKind } from '../protocol/methods.js';
import { type Filter, intersection, union, wantedFilter } from '../protocol/subscription-filter.js';
import { checkStampable } from '../protocol/subscription-messages.js';
import { JsonError } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import { AgentListen } from './agent-listen.js';
import type { Connection } from './connection.js';
import { OtherListen } from './listening-others.js';
import { ListeningStream } from './listening-stream.js';
import type { RequestLimits } from './pending.js';
import { stringParam } from './rewrite.js';
import { KeeperClosed } from './standing.js';

export interface ListeningDeps {
  readonly serverId: string;
  /** JSON text of the `_meta` of our own requests. */
  readonly meta: string;
  readonly limits: RequestLimits;
  readonly connect: () => Promise<Connection>;
  readonly changes: ChangeBus;
  readonly clock: Clock;
  readonly random: Random;
  readonly emit: EventSink;
  readonly doubt: (serverId: string) => void;
}

/**
 * Who listens to one modern server: its agents, and the cache as long as it keeps lists. All are told from one stream,
 * the cache first.
 */
export class Listening {
  readonly #deps: ListeningDeps;
  readonly #agents = new Set<AgentListen>();
  readonly #stream: ListeningStream;
  /** The cache keeps lists of this server. */
  #kept = false;

  constructor(deps: ListeningDeps) {
    this.#deps = deps;
    this.#stream = new ListeningStream({
      ...deps,
      wanted: (announced) => this.#wanted(announced),
      useful: () => this.#kept || this.wanted,
      acknowledged: () => this.#beginAll(),
      heard: (message) => this.#heard(message),
      returned: () => this.#announceReturn(),
    });
  }

  /** True while agents listen. */
  get wanted(): boolean {
    return this.#agents.size > 0;
  }

  /**
   * Serves an agent's `subscriptions/listen` until the agent ends it: the acknowledgement is the first that it is told.
   * Resolves when the servers' side ends it, or refuses what only the server knows. Rejects with GatewayError.
   */
  async serve(exchange: Exchange): Promise<Message> {
    const { serverId, clock } = this.#deps;
    const wanted = wantedFilter(exchange.message, serverId);
    const listen = new AgentListen(exchange, wanted, clock);
    const { others } = wanted;
    return others === undefined
      ? await this.#serve(listen)
      : await this.#serveOthers(exchange, listen, others);
  }

  /** A list was asked for: while it is kept, its changes are listened for. */
  keep(): void {
    if (this.#kept) return;
    this.#kept = true;
    this.#stream.keepUp();
  }

  /** Nobody uses the server at present. */
  rest(): void {
    this.#kept = false;
    this.#stream.shrink();
  }

  /** A connection stands; after a loss what was listened for is listened for again. */
  connected(): void {
    this.#stream.keepUp();
  }

  /** Ends it for good: agents that were acknowledged gently, others so that another connection takes them over. */
  close(): void {
    const failure = new KeeperClosed(this.#deps.serverId);
    this.#kept = false;
    for (const listen of this.#agents) {
      if (listen.begun) listen.finish();
      else listen.fail(failure);
    }
    this.#stream.close(failure);
  }

  async #serve(listen: AgentListen, begun: () => void = () => {}): Promise<Message> {
    this.#agents.add(listen);
    try {
      await Promise.race([this.#begin(listen), listen.ended]);
      begun();
      return await listen.ended;
    } finally {
      this.#agents.delete(listen);
      listen.stop();
      this.#stream.shrink();
    }
  }

  /** Members that only the server knows go to it as they are; if it refuses them, that is the agent's answer. */
  async #serveOthers(exchange: Exchange, listen: AgentListen, filter: string): Promise<Message> {
    const { serverId, clock, limits } = this.#deps;
    const stream = new OtherListen({
      ...{ serverId, clock, ackMs: limits.idleMs },
      tell: (message) => this.#tellOther(listen, message),
      ended: (end) => (end.kind === 'broken' ? listen.fail(end.failure) : listen.finish()),
    });
    try {
      const connection = await this.#deps.connect();
      const opened = await Promise.race([stream.open(connection, exchange, filter), listen.ended]);
      if ('kind' in opened) return opened;
      if (opened.refused) return opened.refused;
      listen.others = opened.honoured;
      return await this.#serve(listen, () => stream.begin());
    } finally {
      stream.close();
      listen.stop();
    }
  }

  async #begin(listen: AgentListen): Promise<void> {
    if (!this.#stream.covers(listen.wanted))
      await this.#stream.cover().catch((failure: unknown) => {
        // It may have been acknowledged meanwhile; what failed was for another then.
        if (!listen.begun) throw failure;
      });
    this.#beginOne(listen);
  }

  #beginOne(listen: AgentListen): void {
    listen.begin(intersection(listen.wanted, this.#stream.honoured));
  }

  #beginAll(): void {
    for (const listen of this.#agents) if (this.#stream.covers(listen.wanted)) this.#beginOne(listen);
  }

  #wanted(announced: ReadonlySet<ListKind>): Filter {
    const filters = [...this.#agents].map(({ wanted }) => wanted);
    return union(this.#kept ? [...filters, { kinds: announced, uris: new Set() }] : filters);
  }

  /** Lists and resources may have changed unheard: forget first, then tell. */
  #announceReturn(): void {
    const { changes, serverId } = this.#deps;
    changes.publish({ serverId, reason: 'reinitialized', kinds: [] }, () => {
      for (const listen of this.#agents) {
        for (const kind of listen.honoured.kinds)
          listen.changed(kind, notification(`notifications/${kind}/list_changed`));
        for (const uri of listen.honoured.uris)
          listen.updated(uri, notification('notifications/resources/updated', { uri }));
      }
    });
  }

  #heard(message: Message): void {
    const { changes, serverId } = this.#deps;
    const kind = listChangedKind(message.method);
    if (kind)
      return changes.publish({ serverId, reason: 'list_changed', kinds: [kind] }, () => {
        checkStampable(message);
        for (const listen of this.#agents) listen.changed(kind, message);
      });
    const uri =
      message.method === 'notifications/resources/updated' ? stringParam(message, 'uri') : undefined;
    if (uri === undefined) return this.#drop(message, 'nobody listens for it');
    changes.publish({ serverId, reason: 'updated', kinds: ['resources'], uri }, () => {
      for (const listen of this.#agents) listen.updated(uri, message);
    });
  }

  #tellOther(listen: AgentListen, message: Message): void {
    try {
      listen.tell(message);
    } catch (failure) {
      if (!(failure instanceof JsonError)) throw failure;
      this.#drop(message, 'its params are ambiguous');
    }
  }

  #drop(message: Message, why: string): void {
    this.#deps.emit({ type: 'message_dropped', serverId: this.#deps.serverId, method: message.method, why });
  }
}
