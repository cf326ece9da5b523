import { GatewayError } from '../base/errors.js';
import type { Exchange, Handler } from '../pipeline/exchange.js';
import type { ListKind } from '../protocol/methods.js';
import { type Filter, NOTHING, wantedFilter } from '../protocol/subscription-filter.js';
import { type Message, readMessage } from '../wire/message.js';
import type { Servers } from './deps.js';
import { ListeningAgent } from './listen-agent.js';
import { bodyOf, textOf } from './members.js';

const KINDS: readonly ListKind[] = ['tools', 'prompts', 'resources'];
/** Subscriptions that a server is asked for at a time. */
const AT_ONCE = 16;

type Ask = (method: string, params: string) => Promise<Message>;

/**
 * Serves a modern agent's `subscriptions/listen` by the notifications that a legacy server sends unasked, and by
 * subscriptions to resources, until the agent ends it. Rejects with GatewayError; an error that the server answers to
 * `initialize` is the answer. `next` takes exchanges of the legacy era.
 */
export async function listenToLegacy(upper: Exchange, next: Handler, servers: Servers): Promise<Message> {
  const { serverId, caller, message, signal } = upper;
  const wanted = wantedFilter(message, serverId);
  const agent = new ListeningAgent(upper, wanted);
  const ask: Ask = (method, params) => next(requestOf(upper, agent, method, params));
  try {
    const greeting = await ask('initialize', '{}');
    if (greeting.kind === 'error') return greeting;
    if (signal.aborted) throw ended(serverId);
    servers.listen(serverId, agent, caller);
    agent.begin(await honoured(wanted, greeting, ask));
    return await until(signal, serverId);
  } finally {
    servers.leave(agent);
  }
}

/** What the server announces, and the resources that it lets us subscribe to. */
async function honoured(wanted: Filter, greeting: Message, ask: Ask): Promise<Filter> {
  const announces = (...path: string[]) => {
    const span = bodyOf(greeting, 'capabilities', ...path);
    return span !== undefined && textOf(greeting, span) === 'true';
  };
  const kinds = KINDS.filter((kind) => wanted.kinds.has(kind) && announces(kind, 'listChanged'));
  const uris = announces('resources', 'subscribe') ? await subscribed([...wanted.uris], ask) : NOTHING.uris;
  return { kinds: new Set(kinds), uris };
}

/** Those of the resources that the server agreed to. */
async function subscribed(uris: readonly string[], ask: Ask): Promise<Set<string>> {
  const agreed = new Set<string>();
  const left = uris.values();
  const some = async () => {
    for (const uri of left) {
      const answer = await ask('resources/subscribe', `{"uri":${JSON.stringify(uri)}}`);
      if (answer.kind === 'result') agreed.add(uri);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, uris.length) }, some));
  return agreed;
}

function requestOf(upper: Exchange, agent: ListeningAgent, method: string, params: string): Exchange {
  const { serverId, caller, signal } = upper;
  const text = `{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":${params}}`;
  return {
    ...{ era: 'legacy', serverId, caller, signal, agent, fresh: false },
    message: readMessage(Buffer.from(text)),
    notify: (notification) => agent.notify(notification),
    ask: () => agent.ask(),
  };
}

/** Rejects when the agent ends it. */
function until(signal: AbortSignal, serverId: string): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => reject(ended(serverId));
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });
}

function ended(serverId: string): GatewayError {
  return new GatewayError('cancelled', 'The subscription was ended', { serverId });
}
