import { GatewayError } from '../base/errors.js';
import type { Exchange, Handler } from '../pipeline/exchange.js';
import type { Era } from '../protocol/revisions.js';
import type { HeaderPlan } from '../protocol/tool-headers.js';
import { JsonError, member, stringAt } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';

/** What is known of tools and their servers, and a way to learn more. */
export interface ToolKnowledge {
  readonly handle: Handler;
  /** How a tool's arguments are mirrored, as far as its list was seen. */
  headerPlan(exchange: Exchange, tool: string): HeaderPlan | undefined;
  listed(exchange: Exchange, answer: Message): void;
  recall(serverId: string, era: Era): Era | undefined;
}

/**
 * How the arguments of a call are mirrored in headers. Where nothing is known of the tool, the list is asked for, most
 * likely of the cache; servers of the legacy era have no such headers. Never rejects.
 */
export async function mirroredParams(call: Exchange, tools: ToolKnowledge): Promise<HeaderPlan | undefined> {
  const tool = nameOf(call.message);
  if (tool === undefined) return undefined;
  const known = tools.headerPlan(call, tool);
  if (known || tools.recall(call.serverId, 'modern') !== 'modern') return known;
  try {
    // From the cache it has not passed where plans are learnt in the name of this caller.
    tools.listed(call, await tools.handle(listing(call)));
  } catch (failure) {
    // The call itself will be told what is wrong with its server.
    if (!(failure instanceof GatewayError)) throw failure;
  }
  return tools.headerPlan(call, tool);
}

function nameOf({ bytes, params }: Message): string | undefined {
  try {
    const span = params && member(bytes, params.start, 'name');
    return span && bytes[span.start] === 0x22 ? stringAt(bytes, span.start, span.end) : undefined;
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}

/** A listing in the name of whoever calls, with the call's own `_meta`. */
function listing(call: Exchange): Exchange {
  const { bytes, params, id } = call.message;
  const meta = params && member(bytes, params.start, '_meta');
  const text = meta ? bytes.toString('utf8', meta.start, meta.end) : '{}';
  const message = readMessage(
    Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"tools/list","params":{"_meta":${text}}}`),
  );
  const { serverId, era, agent, caller, signal } = call;
  return {
    serverId,
    era,
    agent,
    caller,
    signal,
    message,
    fresh: false,
    notify: () => {},
    ask: () => agent.ask(message, { signal, onNotification: () => {} }),
  };
}
