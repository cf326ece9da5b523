import type { ChangeBus } from '../pipeline/changes.js';
import type { EventSink } from '../pipeline/events.js';
import type { Exchange } from '../pipeline/exchange.js';
import { LOG_LEVEL_META, SUBSCRIPTION_ID_META } from '../protocol/meta.js';
import { listChangedKind } from '../protocol/methods.js';
import { JsonError } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import type { Connection } from './connection.js';
import type { Pending } from './pending.js';
import { mentions, paramOf, textOf, withText } from './rewrite.js';

export interface ModernInboundDeps {
  readonly serverId: string;
  readonly changes: ChangeBus;
  readonly emit: EventSink;
}

/** What a modern server sends besides answers, brought to the request that it belongs to, or to nobody. */
export class ModernInbound {
  readonly #deps: ModernInboundDeps;

  constructor(deps: ModernInboundDeps) {
    this.#deps = deps;
  }

  /** Takes a notification or a request. Never throws. */
  take(connection: Connection, message: Message, origin: Pending | undefined): void {
    if (message.kind === 'request') return this.#drop(message, 'servers of this era make no requests');
    try {
      this.#notification(connection, message, origin);
    } catch (failure) {
      if (!(failure instanceof JsonError)) throw failure;
      this.#drop(message, 'its params are ambiguous');
    }
  }

  #notification(connection: Connection, message: Message, origin: Pending | undefined): void {
    const listening = origin ?? subscribed(connection, message);
    if (listening?.listener) return listening.listener(message);
    switch (message.method) {
      case 'notifications/progress':
        return this.#progress(connection, message, origin);
      case 'notifications/message':
        return this.#deliver(message, origin?.exchange ?? onlyLogger(connection));
      case 'notifications/cancelled':
        return this.#drop(message, 'no subscription of that id is open');
      default:
        return this.#other(message, origin);
    }
  }

  #progress(connection: Connection, message: Message, origin: Pending | undefined): void {
    const span = paramOf(message, 'progressToken');
    const pending = span && connection.pending(textOf(message, span));
    if (!span || !pending?.exchange || (origin && origin !== pending))
      return this.#drop(message, 'no request gave this progress token');
    pending.alive();
    if (pending.progressToken !== undefined)
      pending.exchange.notify(withText(message, span, pending.progressToken));
  }

  /** A change is one wherever it is told; agents hear of it by what they listen to. */
  #other(message: Message, origin: Pending | undefined): void {
    const { serverId, changes } = this.#deps;
    const kind = listChangedKind(message.method);
    if (kind) return changes.publish({ serverId, reason: 'list_changed', kinds: [kind] });
    this.#deliver(message, origin?.exchange);
  }

  #deliver(message: Message, to: Exchange | undefined): void {
    if (to) to.notify(message);
    else this.#drop(message, 'nothing tells which request it belongs to');
  }

  #drop(message: Message, why: string): void {
    this.#deps.emit({ type: 'message_dropped', serverId: this.#deps.serverId, method: message.method, why });
  }
}

/** The subscription that a message on a shared channel names: our own id for it. */
function subscribed(connection: Connection, message: Message): Pending | undefined {
  if (!mentions(message, SUBSCRIPTION_ID_META)) {
    if (message.method !== 'notifications/cancelled') return undefined;
    const ended = paramOf(message, 'requestId');
    return ended && connection.pending(textOf(message, ended));
  }
  const id = paramOf(message, '_meta', SUBSCRIPTION_ID_META);
  return id && connection.pending(textOf(message, id));
}

/** The one request under way that wants to be told; of several nobody knows which is meant. */
function onlyLogger(connection: Connection): Exchange | undefined {
  const loggers: Exchange[] = [];
  for (const { exchange } of connection.exchanges()) if (wantsLog(exchange)) loggers.push(exchange);
  return loggers.length === 1 ? loggers[0] : undefined;
}

function wantsLog({ message }: Exchange): boolean {
  try {
    return mentions(message, LOG_LEVEL_META) && paramOf(message, '_meta', LOG_LEVEL_META) !== undefined;
  } catch (error) {
    if (error instanceof JsonError) return false;
    throw error;
  }
}
