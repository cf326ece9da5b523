import { type Incoming, open } from './agent-http.js';
import type { Wire } from './mcp-server.js';
import { type Declaration, modernText } from './modern-text.js';

export interface ModernPost {
  readonly id?: string;
  readonly declaration?: Declaration;
  readonly token?: string;
  /** In place of the body. */
  readonly body?: string;
}

/** Sends one request of 2026-07-28 with the headers that mirror it. */
export function modernPost(
  url: string,
  method: string,
  params: object = {},
  { id = '1', declaration = {}, token, body }: ModernPost = {},
): Promise<Incoming> {
  const { name, uri, taskId } = params as { name?: string; uri?: string; taskId?: unknown };
  const named = name ?? uri ?? (typeof taskId === 'string' ? taskId : undefined);
  return open(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(named === undefined ? {} : { 'mcp-name': named }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: body ?? modernText(method, id, params, declaration),
  });
}

/** The response to a request, in whatever form it came. */
export async function responseOf(answer: Incoming): Promise<Wire> {
  if (!String(answer.headers['content-type']).startsWith('text/event-stream')) return answer.json();
  return (await answer.rest()).at(-1) as Wire;
}
