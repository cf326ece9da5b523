import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { EventSink } from '../pipeline/events.js';
import type { Exchange } from '../pipeline/exchange.js';
import type { Era } from '../protocol/revisions.js';
import type { Message } from '../wire/message.js';
import { refusesSessions, showsAnotherEra } from './era-signs.js';
import { Eras } from './eras.js';
import { OtherEra } from './modern-greeting.js';

/** For whom it is found out how a server is spoken to. */
export type Asking = Pick<Exchange, 'serverId' | 'agent' | 'caller'>;

export interface EraFinderDeps {
  readonly clock: Clock;
  readonly emit: EventSink;
  /** The era that a server is configured with. */
  readonly pinned: (serverId: string) => Era | 'auto';
  /**
   * Connects in the modern era; rejects with OtherEra where the server shows that it does not speak it. `suspected`: there
   * is reason to believe that it does, so that it may only be slow to start, and an earlier refusal says nothing.
   */
  readonly connect: (asking: Asking, suspected: boolean) => Promise<void>;
  /** True while somebody's connection in the modern era stands. */
  readonly proven: (serverId: string) => boolean;
}

const NO_SESSIONS = 'it refuses to begin a session';
/** A server that refuses requests in ways that may have another meaning is not asked for its era each time. */
const SUSPECT_EVERY_MS = 5_000;

/** Finds out which era a server speaks, and notices when it has become one of the other. */
export class EraFinder {
  readonly #deps: EraFinderDeps;
  readonly #eras: Eras;
  /** What came of it when a server was last asked because of what it refused. */
  readonly #suspicions = new Map<string, { readonly at: number; readonly isModern: Promise<boolean> }>();

  constructor(deps: EraFinderDeps) {
    this.#deps = deps;
    this.#eras = new Eras(deps.clock, deps.emit);
  }

  /** The era in which agents of an era are served; undefined: not found out yet. */
  recall(serverId: string, era: Era): Era | undefined {
    const pinned = this.#deps.pinned(serverId);
    if (pinned !== 'auto') return pinned;
    const modern = this.#eras.speaks(serverId, 'modern');
    if (era === 'legacy')
      return modern && this.#eras.speaks(serverId, 'legacy') === false ? 'modern' : 'legacy';
    return modern === undefined ? undefined : modern ? 'modern' : 'legacy';
  }

  /**
   * Finds out by connecting whether a server speaks the modern era. For a legacy agent: after its `initialize` was
   * refused. Rejects with GatewayError where nothing tells.
   */
  async find(asking: Asking, era: Era): Promise<Era> {
    const found = await this.#probed(asking, era === 'legacy');
    if (found === 'modern' && era === 'legacy')
      this.#eras.note(asking.serverId, 'legacy', false, NO_SESSIONS);
    return found;
  }

  /** A session began. */
  confirmLegacy(serverId: string): void {
    this.#eras.confirmLegacy(serverId);
  }

  forget(serverId: string): void {
    this.#eras.forget(serverId);
    this.#suspicions.delete(serverId);
  }

  /**
   * A request that is sent in the modern era. One that was answered as a legacy server does, did not run: who the server
   * is, is found out anew. Rejects with OtherEra where it is another one now.
   */
  async modern(asking: Asking, send: () => Promise<Message>): Promise<Message> {
    try {
      return await send();
    } catch (failure) {
      if (!(failure instanceof OtherEra)) throw failure;
      const { evidence } = failure;
      if (this.#deps.pinned(asking.serverId) !== 'auto') return asAnswered(evidence ?? failure);
      if ((await this.#probed(asking, false)) === 'legacy' || !evidence) throw failure;
      return asAnswered(evidence);
    }
  }

  /** The same in the other direction: a server that was a legacy one may have been replaced. */
  async legacy(asking: Asking, send: () => Promise<Message>): Promise<Message> {
    let evidence: Message | GatewayError;
    try {
      const answer = await send();
      if (!showsAnotherEra(answer)) return answer;
      evidence = answer;
    } catch (failure) {
      if (!refusesSessions(failure)) throw failure;
      evidence = failure;
    }
    if (await this.#isModernNow(asking)) throw new OtherEra(asking.serverId, NO_SESSIONS, evidence);
    return asAnswered(evidence);
  }

  #isModernNow(asking: Asking): Promise<boolean> {
    const { serverId } = asking;
    if (this.#deps.pinned(serverId) !== 'auto') return Promise.resolve(false);
    const now = this.#deps.clock.now();
    const before = this.#suspicions.get(serverId);
    if (before && now - before.at < SUSPECT_EVERY_MS) return before.isModern;
    const isModern = this.#suspect(asking);
    this.#suspicions.set(serverId, { at: now, isModern });
    return isModern;
  }

  async #suspect(asking: Asking): Promise<boolean> {
    const era = await this.#probed(asking, true).catch(() => 'legacy');
    if (era === 'modern') this.#eras.note(asking.serverId, 'legacy', false, NO_SESSIONS);
    return era === 'modern';
  }

  async #probed(asking: Asking, suspected: boolean): Promise<Era> {
    const { serverId } = asking;
    try {
      await this.#deps.connect(asking, suspected);
    } catch (failure) {
      if (!(failure instanceof OtherEra)) throw failure;
      // One caller's refusal says nothing of a server that serves others.
      const { evidence, why } = failure;
      if (evidence && this.#deps.proven(serverId))
        throw evidence instanceof GatewayError ? evidence : failure;
      this.#eras.note(serverId, 'modern', false, why, evidence !== undefined);
      return 'legacy';
    }
    this.#eras.note(serverId, 'modern', true, 'it answered server/discover');
    return 'modern';
  }
}

function asAnswered(evidence: Message | GatewayError): Message {
  if (evidence instanceof GatewayError) throw evidence;
  return evidence;
}
