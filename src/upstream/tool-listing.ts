import type { Exchange } from '../pipeline/exchange.js';
import { JsonError, member, stringAt } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';
import { paramOf, textOf } from './rewrite.js';

/** Pages of one list that are asked for on behalf of one call. */
const MAX_PAGES = 50;

/** Lists a server's tools in the name of whoever makes a call, every page of it; `list` sends one request. */
export async function listedAgain(
  call: Exchange,
  list: (listing: Exchange) => Promise<Message>,
): Promise<void> {
  let cursor: string | undefined;
  const seen = new Set<string>();
  for (let page = 0; page < MAX_PAGES; page++) {
    cursor = nextCursorOf(await list(listing(call, cursor)));
    if (cursor === undefined || seen.has(cursor)) return;
    seen.add(cursor);
  }
}

function listing(call: Exchange, cursor: string | undefined): Exchange {
  const { id } = call.message;
  const meta = paramOf(call.message, '_meta');
  const params = [
    ...(meta ? [`"_meta":${textOf(call.message, meta)}`] : []),
    ...(cursor === undefined ? [] : [`"cursor":${JSON.stringify(cursor)}`]),
  ];
  const text = `{"jsonrpc":"2.0","id":${id},"method":"tools/list","params":{${params.join(',')}}}`;
  const { serverId, era, agent, caller, signal } = call;
  const message = readMessage(Buffer.from(text));
  return {
    ...{ serverId, era, agent, caller, signal, message, fresh: true },
    notify: () => {},
    ask: (question, options) => agent.ask(question, options),
  };
}

function nextCursorOf({ bytes, body, kind }: Message): string | undefined {
  try {
    const span = kind === 'result' && body ? member(bytes, body.start, 'nextCursor') : undefined;
    return span && bytes[span.start] === 0x22 ? stringAt(bytes, span.start, span.end) : undefined;
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}
