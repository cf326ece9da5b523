import { GatewayError } from '../base/errors.js';
import type { Exchange } from '../pipeline/exchange.js';
import { forEachMember, items, repeated, type Span, scanMembers } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';
import { declares, isUrl } from './askable.js';
import type { Question } from './bridged-call.js';
import { misbehaved } from './faults.js';
import { bodyOf, changedAt, isObject, paramOf, stringIn, textOf } from './members.js';

const OPEN_BRACE = 0x7b;

/**
 * The result that asks an agent for input. `id` is JSON text.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#inputrequiredresult
 */
export function inputRequired(id: string, questions: readonly Question[], requestState: string): Message {
  const result = `{"resultType":"input_required","inputRequests":${inputRequestsText(questions)},"requestState":${JSON.stringify(requestState)}}`;
  return readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":${result}}`));
}

/** JSON text of `inputRequests`. */
export function inputRequestsText(questions: readonly Question[]): string {
  return `{${questions.map(({ key, request }) => `${JSON.stringify(key)}:${request}`).join(',')}}`;
}

/**
 * JSON text of a server's question as it stands in `inputRequests`, its params as the server wrote them. Throws JsonError
 * where a member that is left out is given twice.
 */
export function asInputRequest(question: Message): string {
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

/** What an agent brings. */
export interface Inputs {
  readonly state: string | undefined;
  /** JSON text of each response by the key of its question. */
  readonly responses: ReadonlyMap<string, string>;
}

/** Throws JsonError for a member that is given twice, GatewayError `invalid_params` for one of another type. */
export function inputsOf(message: Message, serverId: string): Inputs {
  const { requestState: state, inputResponses: responses } = inputSpans(message);
  const text = stringIn(message, state);
  if (state && text === undefined)
    throw new GatewayError('invalid_params', 'requestState must be a string', { serverId });
  if (responses && !isObject(message, responses))
    throw new GatewayError('invalid_params', 'inputResponses must be an object', { serverId });
  return { state: text, responses: responsesIn(message, responses) };
}

/** Each request that may take input is looked through for it: once. */
function inputSpans({ bytes, params }: Message): { requestState?: Span; inputResponses?: Span } {
  const found: { requestState?: Span; inputResponses?: Span } = {};
  if (!params || bytes[params.start] !== OPEN_BRACE) return found;
  scanMembers(bytes, params.start, (name, nameAt, start, end) => {
    if (name !== 'requestState' && name !== 'inputResponses') return;
    if (found[name]) throw repeated(name, nameAt);
    found[name] = { start, end };
  });
  return found;
}

/** Only objects are responses: whatever else is there answers nothing. */
function responsesIn(message: Message, span: Span | undefined): Map<string, string> {
  const responses = new Map<string, string>();
  if (!span) return responses;
  forEachMember(message.bytes, span.start, (key, start, end) => {
    if (isObject(message, { start, end })) responses.set(key, textOf(message, { start, end }));
  });
  return responses;
}

/**
 * The URLs that a legacy error -32042 sends a person to, as questions; undefined where it names none. Throws GatewayError
 * `capability_missing` where the agent cannot open URLs.
 * https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#url-elicitation-required-error
 */
export function urlQuestions(answer: Message, { agent, serverId }: Exchange): Question[] | undefined {
  const span = bodyOf(answer, 'data', 'elicitations');
  const all = span && items(answer.bytes, span.start);
  if (!all || all.length === 0) return undefined;
  if (!declares(agent.profile, 'elicitation', 'url')) {
    const data = { requiredCapabilities: { elicitation: { url: {} } } };
    const why = `Server "${serverId}" needs an agent that opens URLs`;
    throw new GatewayError('capability_missing', why, { serverId, data });
  }
  return all.map((one, index) => ({ key: `q${index + 1}`, request: urlRequest(answer, one, serverId) }));
}

function urlRequest(answer: Message, span: Span, serverId: string): string {
  if (!isObject(answer, span)) throw misbehaved(serverId, 'sends a person to what is no URL');
  const head = '{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":';
  const question = readMessage(Buffer.from(`${head}${textOf(answer, span)}}`));
  if (!isUrl(question)) throw misbehaved(serverId, 'sends a person to what is no URL');
  return asInputRequest(question);
}
