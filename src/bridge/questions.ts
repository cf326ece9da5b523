import type { Clock } from '../base/clock.js';
import { GatewayError, messageOf } from '../base/errors.js';
import { unguessableId } from '../base/random.js';
import type { Exchange } from '../pipeline/exchange.js';
import { forEachMember, member, type Span } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';
import { isUrl, mayBeAsked } from './askable.js';
import { misbehaved } from './faults.js';
import { bodyOf, changedAt, isObject, paramOf, stringIn, textOf } from './members.js';

/** Of what others wrote, so much stands in a message of ours. */
const MAX_SHOWN = 200;

export interface Patience {
  readonly clock: Clock;
  /** How long an agent may take to answer what it is asked. */
  readonly patienceMs: number;
}

/**
 * What a server asks its agent in `inputRequests`, as requests of the agent's revision by their keys; `span` is where
 * they lie in `answer`. Throws GatewayError `server_protocol` for what an agent must not be asked.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow
 */
export function questionsIn(upper: Exchange, answer: Message, span: Span): Map<string, Message> {
  const { serverId } = upper;
  if (!isObject(answer, span)) throw misbehaved(serverId, 'asks for input by what is no object');
  const questions = new Map<string, Message>();
  forEachMember(answer.bytes, span.start, (key, start, end) => {
    questions.set(key, questionAt(upper, answer, { start, end }));
  });
  return questions;
}

function questionAt(upper: Exchange, answer: Message, span: Span): Message {
  const { serverId, agent, message } = upper;
  const method = member(answer.bytes, span.start, 'method');
  const params = member(answer.bytes, span.start, 'params');
  if (stringIn(answer, method) === undefined || (params && !isObject(answer, params)))
    throw misbehaved(serverId, 'asks for input by what is no request');
  const tail = params ? `,"params":${textOf(answer, params)}` : '';
  // The channel to the agent gives it an id of its own.
  const text = `{"jsonrpc":"2.0","id":1,"method":${textOf(answer, method as Span)}${tail}}`;
  const question = readMessage(Buffer.from(text));
  if (!mayBeAsked(agent.profile, message.method, question))
    throw misbehaved(serverId, `asks its agent for ${shown(question.method)}, which that did not offer`);
  return withElicitationId(question);
}

/** Revision 2025-11-25 wants an id for each URL that a person is sent to; nobody else may guess it. */
function withElicitationId(question: Message): Message {
  if (!isUrl(question) || !question.params || paramOf(question, 'elicitationId')) return question;
  const set = { elicitationId: JSON.stringify(unguessableId()) };
  return changedAt(question, question.params.start, { set });
}

/**
 * Asks the agent everything at once, on the stream of its request. Resolves to the JSON text of `inputResponses`. Rejects
 * with GatewayError where one question stays without a result; the others are then withdrawn.
 */
export async function answersTo(
  questions: ReadonlyMap<string, Message>,
  upper: Exchange,
  { clock, patienceMs }: Patience,
): Promise<string> {
  const withdrawal = new AbortController();
  const signal = AbortSignal.any([upper.signal, withdrawal.signal]);
  let late: GatewayError | undefined;
  const timer = clock.after(patienceMs, () => {
    late = unanswered(upper, [...questions][0], `did not come within ${patienceMs} ms`);
    withdrawal.abort();
  });
  try {
    const asked = [...questions].map(
      async (question) => `${JSON.stringify(question[0])}:${await answerTo(question, upper, signal)}`,
    );
    return `{${(await Promise.all(asked)).join(',')}}`;
  } catch (failure) {
    withdrawal.abort();
    throw late ?? failure;
  } finally {
    timer.cancel();
  }
}

/** JSON text of the agent's result, whatever it says: to decline is an answer too. */
async function answerTo(question: Question, upper: Exchange, signal: AbortSignal): Promise<string> {
  let answer: Message;
  try {
    answer = await upper.ask(question[1], { signal, onNotification: () => {} });
  } catch (failure) {
    if (!(failure instanceof GatewayError) || failure.code !== 'agent_unreachable') throw failure;
    throw unanswered(upper, question, `did not come: ${messageOf(failure)}`);
  }
  if (answer.kind === 'result' && answer.body) return textOf(answer, answer.body);
  throw unanswered(upper, question, `was an error: ${reasonIn(answer)}`);
}

type Question = readonly [key: string, message: Message];

function unanswered({ serverId }: Exchange, question: Question | undefined, how: string): GatewayError {
  const [key = '', message] = question ?? [];
  const what = `${message?.method} (${JSON.stringify(shown(key))})`;
  const why = `The agent's answer to ${what}, which server "${serverId}" needs, ${how}`;
  return new GatewayError('agent_unreachable', why, { serverId });
}

/** What an error of the agent's says; it may be spelled in any way. */
function reasonIn(answer: Message): string {
  try {
    return shown(stringIn(answer, bodyOf(answer, 'message')) ?? 'no reason given');
  } catch {
    return 'no reason given';
  }
}

function shown(text: string): string {
  return text.slice(0, MAX_SHOWN);
}
