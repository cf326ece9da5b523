import { GatewayError } from '../base/errors.js';
import type { ListKind } from '../protocol/methods.js';
import { type Filter, NOTHING, wantedFilter } from '../protocol/subscription-filter.js';
import type { Message } from '../wire/message.js';
import type { BridgedRequest } from './bridged-request.js';
import type { Servers } from './deps.js';
import { bodyOf, textOf } from './members.js';
import { Subscription } from './subscription.js';
import type { Watching } from './watched-resources.js';

const KINDS: readonly ListKind[] = ['tools', 'prompts', 'resources'];
/** Subscriptions that a server is asked for at a time. */
const AT_ONCE = 16;

/**
 * Serves a modern agent's `subscriptions/listen` by the notifications that a legacy server sends unasked, and by
 * subscriptions to resources, until the agent ends it: all in the session in which its calls are made. Rejects with
 * GatewayError; an error that the server answers to `initialize` is the answer.
 */
export async function listenToLegacy(bridged: BridgedRequest, servers: Servers): Promise<Message> {
  const { upper, agent } = bridged;
  const { serverId, caller, message, signal } = upper;
  const wanted = wantedFilter(message, serverId);
  const subscription = new Subscription(upper, wanted);
  return await agent.listen(subscription, async () => {
    const greeting = await bridged.greeting();
    if (greeting.kind === 'error') return greeting;
    if (signal.aborted) throw ended(serverId);
    servers.listen(serverId, agent, caller);
    const watching: Watching[] = [];
    const over = until(signal, serverId);
    try {
      subscription.begin(await Promise.race([honoured(wanted, greeting, bridged, watching), over]));
      return await over;
    } finally {
      for (const { end } of watching) end();
    }
  });
}

/** What the server announces, and the resources that it lets us subscribe to. */
async function honoured(
  wanted: Filter,
  greeting: Message,
  bridged: BridgedRequest,
  watching: Watching[],
): Promise<Filter> {
  const announces = (...path: string[]) => {
    const span = bodyOf(greeting, 'capabilities', ...path);
    return span !== undefined && textOf(greeting, span) === 'true';
  };
  const kinds = KINDS.filter((kind) => wanted.kinds.has(kind) && announces(kind, 'listChanged'));
  const uris = announces('resources', 'subscribe')
    ? await watched([...wanted.uris], bridged, watching)
    : NOTHING.uris;
  return { kinds: new Set(kinds), uris };
}

/** Those of the resources that the server agreed to. */
async function watched(
  uris: readonly string[],
  bridged: BridgedRequest,
  watching: Watching[],
): Promise<Set<string>> {
  // Other subscriptions may count on what is asked for here.
  const ask = (method: string, params: object) => bridged.own(method, params, new AbortController().signal);
  const agreed = new Set<string>();
  const left = uris.values();
  const some = async () => {
    for (const uri of left) {
      if (bridged.upper.signal.aborted) return;
      const one = bridged.agent.resources.watch(uri, ask);
      watching.push(one);
      if (await one.agreed) agreed.add(uri);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, uris.length) }, some));
  return agreed;
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
