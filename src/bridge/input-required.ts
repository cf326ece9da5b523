import { GatewayError } from '../base/errors.js';
import type { Exchange } from '../pipeline/exchange.js';
import { forEachMember, items } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';
import { declares, isUrl } from './askable.js';
import type { Question } from './bridged-call.js';
import { bodyOf, changedAt, isObject, paramOf, textOf } from './members.js';

/**
 * The result that asks an agent for input. `id` is JSON text.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#inputrequiredresult
 */
export function inputRequired(
  id: string,
  requests: Readonly<Record<string, string>>,
  requestState: string,
): Message {
  const inputs = Object.entries(requests).map(([key, request]) => `${JSON.stringify(key)}:${request}`);
  const result = `{"resultType":"input_required","inputRequests":{${inputs.join(',')}},"requestState":${JSON.stringify(requestState)}}`;
  return readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":${result}}`));
}

/** Questions as they stand in `inputRequests`, each with its params as the server wrote them. */
export function asInputRequests(questions: readonly Question[]): Record<string, string> {
  return Object.fromEntries(questions.map(({ key, message }) => [key, asInputRequest(message)]));
}

function asInputRequest(question: Message): string {
  const method = JSON.stringify(question.method);
  const plain = isObject(question, question.params) ? withoutIds(question, question.params.start) : question;
  return plain.params
    ? `{"method":${method},"params":${textOf(plain, plain.params)}}`
    : `{"method":${method}}`;
}

/** A URL is not followed up by a notification any more, and nobody reports progress: neither needs an id. */
function withoutIds(question: Message, at: number): Message {
  const meta = paramOf(question, '_meta');
  const quiet = isObject(question, meta)
    ? changedAt(question, meta.start, { remove: ['progressToken'] })
    : question;
  return isUrl(quiet) ? changedAt(quiet, at, { remove: ['elicitationId'] }) : quiet;
}

/** What an agent brings: JSON text of each response by its key. Only objects are responses. */
export function inputResponses(message: Message): Map<string, string> {
  const responses = new Map<string, string>();
  const span = paramOf(message, 'inputResponses');
  if (!isObject(message, span)) return responses;
  forEachMember(message.bytes, span.start, (name, start, end) => {
    if (message.bytes[start] === 0x7b) responses.set(name, textOf(message, { start, end }));
  });
  return responses;
}

/**
 * The URLs that a legacy error -32042 sends a person to, as `inputRequests`. Throws GatewayError `capability_missing`
 * where the agent cannot open URLs.
 * https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#url-elicitation-required-error
 */
export function urlRequests(
  answer: Message,
  { agent, serverId }: Exchange,
): Record<string, string> | undefined {
  const span = bodyOf(answer, 'data', 'elicitations');
  const all = span && items(answer.bytes, span.start);
  if (!all || all.length === 0) return undefined;
  if (!declares(agent.profile, 'elicitation', 'url')) {
    const data = { requiredCapabilities: { elicitation: { url: {} } } };
    const why = `Server "${serverId}" needs an agent that opens URLs`;
    throw new GatewayError('capability_missing', why, { serverId, data });
  }
  const requests = all.map((one, index) => {
    const text = `{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":${textOf(answer, one)}}`;
    return [`q${index + 1}`, asInputRequest(readMessage(Buffer.from(text)))];
  });
  return Object.fromEntries(requests) as Record<string, string>;
}
