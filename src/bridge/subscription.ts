import type { Exchange } from '../pipeline/exchange.js';
import { listChangedKind } from '../protocol/methods.js';
import { concerns, type Filter } from '../protocol/subscription-filter.js';
import { acknowledgement, stamped } from '../protocol/subscription-messages.js';
import { JsonError } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import { isObject, paramOf, stringIn } from './members.js';

/** Notices that wait for the acknowledgement: of lists one each, and of resources up to this. */
const MAX_EARLY = 1_000;

/** A modern agent's subscription at a legacy server: of all that the server tells, it takes what it is for. */
export class Subscription {
  readonly #upper: Exchange;
  readonly #wanted: Filter;
  /** What came before the acknowledgement, the latest of each list and resource. */
  readonly #early = new Map<string, Message>();
  #honoured: Filter | undefined;

  constructor(upper: Exchange, wanted: Filter) {
    this.#upper = upper;
    this.#wanted = wanted;
  }

  /** Acknowledges what is honoured; from here on the agent is told. */
  begin(honoured: Filter): void {
    const { message, signal } = this.#upper;
    if (signal.aborted) return;
    this.#honoured = honoured;
    this.#upper.notify(acknowledgement(message.id, honoured));
    for (const early of this.#early.values()) this.tell(early);
    this.#early.clear();
  }

  /** Never throws: what is ambiguous is dropped. */
  tell(message: Message): void {
    try {
      this.#tell(message);
    } catch (failure) {
      if (!(failure instanceof JsonError)) throw failure;
    }
  }

  #tell(message: Message): void {
    const { signal, message: request } = this.#upper;
    const topic = topicOf(message, this.#honoured ?? this.#wanted);
    if (topic === undefined || signal.aborted) return;
    if (this.#honoured) return this.#upper.notify(stamped(message, request.id));
    if (this.#early.has(topic) || this.#early.size < MAX_EARLY) this.#early.set(topic, message);
  }
}

/** The list or the resource that a notification is news of; undefined for one that the filter does not ask for. */
function topicOf(message: Message, { kinds, uris }: Filter): string | undefined {
  const kind = listChangedKind(message.method);
  if (kind) return kinds.has(kind) ? kind : undefined;
  if (message.method !== 'notifications/resources/updated' || !isObject(message, message.params))
    return undefined;
  const uri = stringIn(message, paramOf(message, 'uri'));
  return uri !== undefined && concerns(uris, uri) ? `uri:${uri}` : undefined;
}
