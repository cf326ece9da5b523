import { GatewayError } from '../base/errors.js';
import type { Agent, Caller } from '../pipeline/exchange.js';
import { notification } from '../protocol/compose.js';
import { SUBSCRIPTION_ID_META } from '../protocol/meta.js';
import type { ListKind } from '../protocol/methods.js';
import { type Filter, isPartOf, NOTHING } from '../protocol/subscription-filter.js';
import type { Message } from '../wire/message.js';
import { KeptListen, type KeptListenDeps } from './listen-kept.js';
import { changedAt, isObject, paramOf, stringIn } from './members.js';

const LISTS: Filter = { kinds: new Set<ListKind>(['tools', 'prompts', 'resources']), uris: NOTHING.uris };

/**
 * What one legacy agent wants to hear of one modern server. Its general stream is one `subscriptions/listen`, and each
 * resource that it subscribes to is one: each begins and ends by itself, and below they share the server's stream.
 */
export class LegacyListener {
  readonly #deps: KeptListenDeps;
  readonly #serverId: string;
  readonly #agent: Agent;
  #caller: Caller;
  #lists: KeptListen | undefined;
  readonly #resources = new Map<string, KeptListen>();
  #over = false;

  constructor(deps: KeptListenDeps, serverId: string, agent: Agent, caller: Caller) {
    this.#deps = deps;
    this.#serverId = serverId;
    this.#agent = agent;
    this.#caller = caller;
  }

  /** The agent's general stream is open: it hears of every list that the server tells changes of. */
  listen(caller: Caller): void {
    this.#caller = caller;
    if (this.#over || (this.#lists && !this.#lists.over)) return;
    const tell = (message: Message) => this.#agent.notify(unstamped(message));
    this.#lists = this.#keep(LISTS, tell, ({ kinds }) => {
      for (const kind of kinds) this.#agent.notify(notification(`notifications/${kind}/list_changed`));
    });
  }

  /**
   * Settles when the server has agreed to tell of a resource. Rejects with GatewayError, `invalid_params` where it does
   * not.
   */
  async subscribe(uri: string, caller: Caller): Promise<void> {
    this.#caller = caller;
    const kept = this.#resources.get(uri) ?? this.#keepResource(uri);
    try {
      if ((await kept.opened).uris.has(uri)) return;
    } catch (failure) {
      this.#forget(uri, kept);
      throw failure;
    }
    this.#forget(uri, kept);
    const serverId = this.#serverId;
    const what = `Server "${serverId}" does not tell of changes of ${uri}`;
    throw new GatewayError('invalid_params', what, { serverId });
  }

  /** Settles at once; one that is not there is no error. */
  async unsubscribe(uri: string, caller: Caller): Promise<void> {
    this.#caller = caller;
    const kept = this.#resources.get(uri);
    if (kept) this.#forget(uri, kept);
  }

  /** The agent is gone. */
  end(): void {
    this.#over = true;
    this.#lists?.end();
    for (const [uri, kept] of this.#resources) this.#forget(uri, kept);
  }

  #keepResource(uri: string): KeptListen {
    if (this.#over) throw new GatewayError('cancelled', 'The agent is gone', { serverId: this.#serverId });
    const heard = (message: Message) => this.#updated(uri, message);
    const kept = this.#keep({ kinds: NOTHING.kinds, uris: new Set([uri]) }, heard, () =>
      this.#agent.notify(notification('notifications/resources/updated', { uri })),
    );
    this.#resources.set(uri, kept);
    return kept;
  }

  #keep(filter: Filter, heard: (message: Message) => void, returned: (honoured: Filter) => void): KeptListen {
    const caller = () => this.#caller;
    const [serverId, agent] = [this.#serverId, this.#agent];
    return new KeptListen(this.#deps, { serverId, agent, caller, filter, heard, returned });
  }

  #forget(uri: string, kept: KeptListen): void {
    kept.end();
    if (this.#resources.get(uri) === kept) this.#resources.delete(uri);
  }

  /** A part of several resources that the agent subscribed to is told once: as news of the first of them. */
  #updated(uri: string, message: Message): void {
    const updated = stringIn(message, paramOf(message, 'uri'));
    for (const [other, { stands }] of this.#resources) {
      if (other === uri) break;
      if (updated !== undefined && stands && isPartOf(updated, other)) return;
    }
    this.#agent.notify(unstamped(message));
  }
}

/** A notification without the stamp of the subscription, which means nothing to its agent. */
export function unstamped(message: Message): Message {
  const meta = isObject(message, message.params) ? paramOf(message, '_meta') : undefined;
  if (!isObject(message, meta)) return message;
  const rest = changedAt(message, meta.start, { remove: [SUBSCRIPTION_ID_META] });
  const left = paramOf(rest, '_meta');
  const isEmpty = left && /^\{\s*\}$/.test(rest.bytes.toString('utf8', left.start, left.end));
  return isEmpty && rest.params && rest !== message
    ? changedAt(rest, rest.params.start, { remove: ['_meta'] })
    : rest;
}
