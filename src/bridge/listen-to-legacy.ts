import { GatewayError } from '../base/errors.js';
import { unguessableId } from '../base/random.js';
import type { Agent, AgentProfile, Exchange, Handler } from '../pipeline/exchange.js';
import type { ListKind } from '../protocol/methods.js';
import { listChangedKind } from '../protocol/methods.js';
import { LATEST_LEGACY_REVISION } from '../protocol/revisions.js';
import { concerns, type Filter, wantedFilter } from '../protocol/subscription-filter.js';
import { acknowledgement, stamped } from '../protocol/subscription-messages.js';
import { type Message, readMessage } from '../wire/message.js';
import type { Servers } from './deps.js';
import { bodyOf, isObject, paramOf, stringIn, textOf } from './members.js';

const KINDS: readonly ListKind[] = ['tools', 'prompts', 'resources'];

/**
 * Serves a modern agent's `subscriptions/listen` by the notifications that a legacy server sends unasked, and by
 * subscriptions to resources, until the agent ends it. Rejects with GatewayError.
 */
export async function listenToLegacy(upper: Exchange, next: Handler, servers: Servers): Promise<Message> {
  const { serverId, caller, message } = upper;
  const wanted = wantedFilter(message, serverId);
  const agent = new ListeningAgent(upper);
  const ask = (method: string, params: string) => next(request(upper, agent, method, params));
  try {
    const greeting = await ask('initialize', '{}');
    if (greeting.kind === 'error') return greeting;
    servers.listen(serverId, agent, caller);
    return await agent.begin(await honoured(wanted, greeting, ask));
  } finally {
    servers.leave(agent);
  }
}

/** What the server announces, and the resources that it lets us subscribe to. */
async function honoured(
  wanted: Filter,
  greeting: Message,
  ask: (method: string, params: string) => Promise<Message>,
): Promise<Filter> {
  const announces = (...path: string[]) => {
    const span = bodyOf(greeting, 'capabilities', ...path);
    return span !== undefined && textOf(greeting, span) === 'true';
  };
  const kinds = KINDS.filter((kind) => wanted.kinds.has(kind) && announces(kind, 'listChanged'));
  const uris = announces('resources', 'subscribe') ? [...wanted.uris] : [];
  const answers = await Promise.all(
    uris.map((uri) => ask('resources/subscribe', `{"uri":${JSON.stringify(uri)}}`)),
  );
  return {
    kinds: new Set(kinds),
    uris: new Set(uris.filter((_, index) => answers[index]?.kind === 'result')),
  };
}

function request(upper: Exchange, agent: Agent, method: string, params: string): Exchange {
  const { serverId, caller, fresh, signal } = upper;
  const text = `{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":${params}}`;
  const message = readMessage(Buffer.from(text));
  return {
    ...{ era: 'legacy', serverId, caller, fresh, signal, agent, message },
    notify: (notification) => agent.notify(notification),
    ask: (question, options) => agent.ask(question, options),
  };
}

/** Whoever listens, as a legacy server's side sees it. */
class ListeningAgent implements Agent {
  readonly id = `listening:${unguessableId()}`;
  readonly profile: AgentProfile;
  readonly listening = true;
  readonly #upper: Exchange;
  /** What came before the acknowledgement. */
  #early: Message[] = [];
  #honoured: Filter | undefined;

  constructor(upper: Exchange) {
    this.#upper = upper;
    this.profile = { ...upper.agent.profile, revision: LATEST_LEGACY_REVISION };
  }

  begin(honoured: Filter): Promise<never> {
    const { signal, serverId, message } = this.#upper;
    this.#upper.notify(acknowledgement(message.id, honoured));
    this.#honoured = honoured;
    for (const early of this.#early.splice(0)) this.notify(early);
    return new Promise((_, reject) => {
      const end = () => reject(new GatewayError('cancelled', 'The subscription was ended', { serverId }));
      if (signal.aborted) end();
      else signal.addEventListener('abort', end, { once: true });
    });
  }

  notify(message: Message): void {
    if (!this.#honoured) this.#early.push(message);
    else if (isNews(message, this.#honoured)) this.#upper.notify(stamped(message, this.#upper.message.id));
  }

  ask(): Promise<Message> {
    const details = { serverId: this.#upper.serverId };
    return Promise.reject(
      new GatewayError('agent_unreachable', 'Nobody is asked on a subscription', details),
    );
  }
}

function isNews(message: Message, { kinds, uris }: Filter): boolean {
  const kind = listChangedKind(message.method);
  if (kind) return kinds.has(kind);
  if (message.method !== 'notifications/resources/updated' || !isObject(message, message.params))
    return false;
  const uri = stringIn(message, paramOf(message, 'uri'));
  return uri !== undefined && concerns(uris, uri);
}
