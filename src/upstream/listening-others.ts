import type { Clock } from '../base/clock.js';
import type { Exchange } from '../pipeline/exchange.js';
import { otherMembers } from '../protocol/subscription-filter.js';
import { splice } from '../wire/json.js';
import { memberEdits } from '../wire/members.js';
import type { Message } from '../wire/message.js';
import type { Connection } from './connection.js';
import { paramOf } from './rewrite.js';
import { ServerListen, type ServerListenEnd } from './server-listen.js';

/** What comes before the agent's own acknowledgement is held, up to this. */
const MAX_EARLY = 1_000;

export interface OthersDeps {
  readonly serverId: string;
  readonly clock: Clock;
  /** Until the server must have acknowledged, in milliseconds. */
  readonly ackMs: number;
  readonly tell: (message: Message) => void;
  /** It ended after it was acknowledged: what comes later would be missed. */
  readonly ended: (end: ServerListenEnd) => void;
}

/** What became of it. */
export interface OthersOpened {
  /** JSON text of an object: those members that the server honours. */
  readonly honoured: string;
  /** The error that it answered instead. */
  readonly refused?: Message;
}

/**
 * The members of an agent's filter that are unknown here, such as those of extensions. They may depend on who asks, so
 * that the server is asked for them on a stream of the agent's own, in its own words.
 */
export class OtherListen {
  readonly #deps: OthersDeps;
  #listen: ServerListen | undefined;
  /** Undefined once the agent's own acknowledgement was sent. */
  #early: Message[] | undefined = [];

  constructor(deps: OthersDeps) {
    this.#deps = deps;
  }

  /** Rejects where the server cannot be asked. */
  open(connection: Connection, exchange: Exchange, filter: string): Promise<OthersOpened> {
    const { serverId, clock, ackMs } = this.#deps;
    const request = { serverId, clock, ackMs, filter, meta: metaOf(exchange.message) };
    return new Promise((resolve, reject) => {
      let isOpen = false;
      this.#listen = new ServerListen(connection, request, {
        acknowledged: (message) => {
          isOpen = true;
          const honoured = otherMembers(message);
          if (honoured === undefined) this.close();
          resolve({ honoured: honoured ?? '{}' });
        },
        heard: (message) => this.#heard(message),
        ended: (end) => {
          if (isOpen) this.#deps.ended(end);
          else if (end.kind === 'broken') reject(end.failure);
          else resolve({ honoured: '{}', ...refusalIn(end) });
        },
      });
    });
  }

  /** The agent has its acknowledgement: it is told from here on. */
  begin(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const message of early) this.#deps.tell(message);
  }

  close(): void {
    this.#listen?.close();
  }

  #heard(message: Message): void {
    if (!this.#early) this.#deps.tell(message);
    else if (this.#early.length < MAX_EARLY) this.#early.push(message);
  }
}

function refusalIn(end: ServerListenEnd): Pick<OthersOpened, 'refused'> {
  return end.kind === 'answered' && end.answer.kind === 'error' ? { refused: end.answer } : {};
}

/** The agent's own `_meta`, without a progress token: on this connection tokens are the gateway's. */
function metaOf(message: Message): string {
  const span = paramOf(message, '_meta');
  if (!span) return '{}';
  const meta = message.bytes.subarray(span.start, span.end);
  return splice(meta, memberEdits(meta, 0, { remove: ['progressToken'] })).toString('utf8');
}
