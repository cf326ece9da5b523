import { GatewayError } from '../base/errors.js';
import { unguessableId } from '../base/random.js';
import type { Agent, AgentProfile, Exchange } from '../pipeline/exchange.js';
import { listChangedKind } from '../protocol/methods.js';
import { LATEST_LEGACY_REVISION } from '../protocol/revisions.js';
import { concerns, type Filter } from '../protocol/subscription-filter.js';
import { acknowledgement, stamped } from '../protocol/subscription-messages.js';
import { JsonError } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import { isObject, paramOf, stringIn } from './members.js';

/** Notices that wait for the acknowledgement: of lists one each, and of resources up to this. */
const MAX_EARLY = 1_000;

/**
 * A modern agent's subscription as a legacy server's side sees it: an agent that listens and asks for nothing but what
 * the subscription is for.
 */
export class ListeningAgent implements Agent {
  readonly id = `listening:${unguessableId()}`;
  readonly profile: AgentProfile;
  readonly listening = true;
  readonly #upper: Exchange;
  readonly #wanted: Filter;
  /** What came before the acknowledgement, the latest of each list and resource. */
  readonly #early = new Map<string, Message>();
  #honoured: Filter | undefined;

  constructor(upper: Exchange, wanted: Filter) {
    this.#upper = upper;
    this.#wanted = wanted;
    this.profile = { ...upper.agent.profile, revision: LATEST_LEGACY_REVISION };
  }

  /** Acknowledges what is honoured; from here on the agent is told. */
  begin(honoured: Filter): void {
    const { message, signal } = this.#upper;
    if (signal.aborted) return;
    this.#honoured = honoured;
    this.#upper.notify(acknowledgement(message.id, honoured));
    for (const early of this.#early.values()) this.notify(early);
    this.#early.clear();
  }

  /** Never throws: what is ambiguous is dropped. */
  notify(message: Message): void {
    try {
      this.#notify(message);
    } catch (failure) {
      if (!(failure instanceof JsonError)) throw failure;
    }
  }

  ask(): Promise<Message> {
    const { serverId } = this.#upper;
    return Promise.reject(
      new GatewayError('agent_unreachable', 'Nobody is asked on a subscription', { serverId }),
    );
  }

  #notify(message: Message): void {
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
