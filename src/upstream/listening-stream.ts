import type { Clock, Timer } from '../base/clock.js';
import type { GatewayError } from '../base/errors.js';
import type { Random } from '../base/random.js';
import { Retries } from '../base/retries.js';
import type { ListKind } from '../protocol/methods.js';
import {
  covers,
  type Filter,
  filterText,
  intersection,
  isEmpty,
  NOTHING,
  readFilter,
} from '../protocol/subscription-filter.js';
import { errorCodeOf } from '../wire/error-code.js';
import type { Message } from '../wire/message.js';
import type { Connection } from './connection.js';
import { Offer } from './listening-offer.js';
import { StandingListen } from './listening-standing.js';
import type { RequestLimits } from './pending.js';
import { ServerListen, type ServerListenEnd } from './server-listen.js';

const REOPEN = { baseMs: 1_000, maxMs: 30_000 };
/** How long resources that nobody wants any more are still heard of: agents that leave, leave together. */
const TRIM_MS = 5_000;

export interface ListeningStreamDeps {
  readonly serverId: string;
  /** JSON text of the `_meta` of our own requests. */
  readonly meta: string;
  readonly limits: RequestLimits;
  readonly clock: Clock;
  readonly random: Random;
  readonly doubt: (serverId: string) => void;
  readonly connect: () => Promise<Connection>;
  /** What is to be heard of at a server that tells of changes of the `announced` lists. */
  readonly wanted: (announced: ReadonlySet<ListKind>) => Filter;
  /** False once nobody has a use for the stream. */
  readonly useful: () => boolean;
  /** The server agreed to something more. Called before anything that it sent behind. */
  readonly acknowledged: () => void;
  readonly heard: (message: Message) => void;
  /** The stream stands again, or never will: something may have been missed. */
  readonly returned: () => void;
}

interface Opening {
  readonly asked: Filter;
  readonly listen: ServerListen;
  /** True: acknowledged. False: refused, or not wanted any more. */
  readonly settle: (stands: boolean) => void;
  readonly fail: (failure: unknown) => void;
}

/**
 * One stream of a server's news that covers all that is wanted of them: replaced without a gap when more is wanted,
 * and opened anew, ever more rarely while that fails, when it was lost.
 */
export class ListeningStream {
  readonly #deps: ListeningStreamDeps;
  readonly #offer = new Offer();
  readonly #standing: StandingListen;
  #opening: Opening | undefined;
  #covering: Promise<void> | undefined;
  #honoured: Filter = NOTHING;
  /** Something may have been missed since a stream stood. */
  #gap = false;
  readonly #retries: Retries;
  #trim: Timer | undefined;
  #trimming = false;
  #closedWith: GatewayError | undefined;

  constructor(deps: ListeningStreamDeps) {
    this.#deps = deps;
    this.#standing = new StandingListen(deps.clock);
    this.#retries = new Retries(deps.clock, deps.random, REOPEN);
  }

  /** What the server agreed to. */
  get honoured(): Filter {
    return this.#honoured;
  }

  /** Whether the stream stands and the server was asked for all of this that it offers. */
  covers(wanted: Filter): boolean {
    const { asked } = this.#standing;
    return asked !== undefined && covers(asked, this.#offer.of(wanted));
  }

  /** Settles when the server was asked for all that is wanted and said what it honours. Rejects with GatewayError. */
  cover(): Promise<void> {
    this.#covering ??= this.#cover().catch((failure: unknown) => {
      this.#again();
      throw failure;
    });
    return this.#covering;
  }

  /** The same, while nobody waits for it. */
  keepUp(): void {
    if (this.#deps.useful()) this.cover().catch(() => {});
  }

  /** Less is wanted than before. */
  shrink(): void {
    if (!this.#deps.useful()) return this.#drop();
    if (!this.#standing.asked?.uris.size) return;
    this.#trim ??= this.#deps.clock.after(TRIM_MS, () => {
      this.#trim = undefined;
      this.#trimming = true;
      this.#offer.prune(this.#wanted());
      this.keepUp();
    });
  }

  /** Ends it for good; who waits for it gets `failure`. */
  close(failure: GatewayError): void {
    this.#closedWith = failure;
    this.#opening?.fail(failure);
    this.#drop();
  }

  #wanted(): Filter {
    return this.#deps.wanted(this.#offer.kinds);
  }

  async #cover(): Promise<void> {
    try {
      for (;;) {
        const connection = await this.#deps.connect();
        if (this.#closedWith) throw this.#closedWith;
        this.#offer.learn(connection.facts);
        const missing = this.#missing();
        if (!missing) return;
        const stands = await this.#open(connection, missing);
        // It may have ended again by now: that is another matter, and must wait its turn.
        if (stands && covers(missing, this.#offer.of(this.#wanted()))) return;
      }
    } finally {
      // At once: whoever comes next is not told that this run was for it too.
      this.#covering = undefined;
    }
  }

  /** What the server is to be asked for in place of what it was; undefined where that will do. */
  #missing(): Filter | undefined {
    const wanted = this.#offer.of(this.#wanted());
    const { asked } = this.#standing;
    const tooMuch = this.#trimming && asked !== undefined && !covers(wanted, asked);
    this.#trimming = false;
    if (isEmpty(wanted) || (asked && covers(asked, wanted) && !tooMuch)) return undefined;
    return wanted;
  }

  #open(connection: Connection, asked: Filter): Promise<boolean> {
    this.#retries.cancel();
    const { serverId, meta, clock, limits } = this.#deps;
    const request = { serverId, meta, filter: filterText(asked), clock, ackMs: limits.idleMs };
    return new Promise((resolve, reject) => {
      const over = () => {
        this.#opening = undefined;
      };
      const listen: ServerListen = new ServerListen(connection, request, {
        acknowledged: (message) => this.#acknowledged(connection, listen, asked, message),
        heard: (message) => this.#heard(listen, message),
        ended: (end) => this.#ended(listen, end),
      });
      this.#opening = {
        asked,
        listen,
        settle: (stands) => {
          over();
          resolve(stands);
        },
        fail: (failure) => {
          over();
          listen.close();
          reject(failure);
        },
      };
    });
  }

  #acknowledged({ kind }: Connection, listen: ServerListen, asked: Filter, message: Message): void {
    const honoured = intersection(asked, readFilter(message) ?? NOTHING);
    if (isEmpty(honoured)) {
      listen.close();
      return this.#refused(asked, undefined);
    }
    this.#standing.replace(listen, asked, kind);
    this.#honoured = honoured;
    this.#retries.stands();
    this.#deps.acknowledged();
    this.#announceReturn();
    this.#opening?.settle(true);
    if (!this.#deps.useful()) this.#drop();
  }

  #heard(listen: ServerListen, message: Message): void {
    if (!this.#standing.isNews(listen, message)) return;
    this.#retries.proved();
    this.#deps.heard(message);
  }

  /** The server will not tell: that is remembered, and what stands goes on. */
  #refused(asked: Filter, code: number | undefined): void {
    this.#offer.refuse(asked, this.#standing.asked ?? NOTHING, code);
    if (!this.#standing.asked) this.#honoured = NOTHING;
    if (isEmpty(this.#offer.of(this.#wanted()))) this.#announceReturn();
    this.#opening?.settle(false);
  }

  #announceReturn(): void {
    if (!this.#gap) return;
    this.#gap = false;
    this.#deps.returned();
  }

  #ended(listen: ServerListen, end: ServerListenEnd): void {
    if (this.#standing.ended(listen)) return this.#lost();
    if (listen !== this.#opening?.listen) return;
    if (end.kind === 'broken') return this.#opening.fail(end.failure);
    this.#refused(this.#opening.asked, end.kind === 'answered' ? errorCodeOf(end.answer) : undefined);
  }

  #lost(): void {
    this.#gap = true;
    this.#retries.lost();
    this.#deps.doubt(this.#deps.serverId);
    this.#again();
  }

  #again(): void {
    if (!this.#closedWith && this.#deps.useful()) this.#retries.plan(() => this.keepUp());
  }

  #drop(): void {
    this.#retries.cancel();
    this.#trim?.cancel();
    this.#trim = undefined;
    this.#standing.close();
    this.#honoured = NOTHING;
    this.#gap = false;
    this.#opening?.listen.close();
    this.#opening?.settle(false);
  }
}
