import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import { unguessableId } from '../base/random.js';
import type { Exchange } from '../pipeline/exchange.js';
import { mayAskForInput } from '../protocol/methods.js';
import { forEachMember } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';
import { isUrl, mayBeAsked } from './askable.js';
import { resultTypeOf } from './legacy-answer.js';
import { bodyOf, changedAt, isObject, paramOf, stringIn, textOf } from './members.js';

/** Rounds that one call may take: a server that asks for ever asks in vain. */
const MAX_ROUNDS = 10;
/** Before a request is sent again for which nothing was asked. */
const PAUSE_MS = 250;

export interface RoundsOptions {
  readonly clock: Clock;
  /** Sends the request once; each time it is another one to the server. */
  readonly send: (message: Message) => Promise<Message>;
}

/**
 * Sends a request as often as its server answers `input_required`, and brings it what it asks of the agent, by requests
 * on the agent's own stream. Returns the last answer. Rejects with GatewayError.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
 */
export async function inRounds(upper: Exchange, message: Message, options: RoundsOptions): Promise<Message> {
  let current = message;
  for (let round = 0; round <= MAX_ROUNDS; round++) {
    const answer = await options.send(current);
    if (resultTypeOf(answer) !== 'input_required') return answer;
    const { serverId } = upper;
    if (!mayAskForInput(upper.message.method)) throw misbehaved(serverId, 'asks for input where it must not');
    const asked = readInputRequired(answer, serverId);
    const inputs = asked.requests.size > 0 ? await gathered(upper, asked.requests) : undefined;
    if (!inputs) await pause(options.clock, upper);
    current = withInputs(message, inputs, asked.state);
  }
  throw misbehaved(upper.serverId, `asked for input more than ${MAX_ROUNDS} times in one call`);
}

interface InputRequired {
  /** JSON text of each request by its key. */
  readonly requests: ReadonlyMap<string, string>;
  /** JSON text; undefined where the server keeps no state with us. */
  readonly state: string | undefined;
}

function readInputRequired(answer: Message, serverId: string): InputRequired {
  const requests = new Map<string, string>();
  const span = bodyOf(answer, 'inputRequests');
  if (span && !isObject(answer, span)) throw misbehaved(serverId, 'asks for input by what is no object');
  if (span)
    forEachMember(answer.bytes, span.start, (key, start, end) => {
      requests.set(key, textOf(answer, { start, end }));
    });
  const state = bodyOf(answer, 'requestState');
  if (state && stringIn(answer, state) === undefined)
    throw misbehaved(serverId, 'gave a requestState that is no text');
  if (requests.size === 0 && !state) throw misbehaved(serverId, 'requires input and does not say which');
  return { requests, state: state && textOf(answer, state) };
}

/** The agent's answers, as JSON text of `inputResponses`. One that fails withdraws the others. */
async function gathered(upper: Exchange, requests: ReadonlyMap<string, string>): Promise<string> {
  const failed = new AbortController();
  const signal = AbortSignal.any([upper.signal, failed.signal]);
  try {
    const questions = [...requests].map(([key, text]) => [key, questionOf(upper, text)] as const);
    const answers = await Promise.all(
      questions.map(async ([key, question]) => {
        const result = await answered(upper, question, signal);
        return `${JSON.stringify(key)}:${result}`;
      }),
    );
    return `{${answers.join(',')}}`;
  } catch (failure) {
    failed.abort();
    throw failure;
  }
}

/** A request to the agent, as its revision has it. */
function questionOf(upper: Exchange, text: string): Message {
  const { serverId, agent, message } = upper;
  if (!text.startsWith('{')) throw misbehaved(serverId, 'asks for input by what is no request');
  const id = JSON.stringify(unguessableId());
  const question = readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${id},${text.slice(1)}`));
  if (question.kind !== 'request') throw misbehaved(serverId, 'asks for input by what is no request');
  if (!mayBeAsked(agent.profile, message.method, question))
    throw misbehaved(serverId, `asks its agent for ${question.method}, which that did not offer`);
  if (!isUrl(question) || !question.params || paramOf(question, 'elicitationId')) return question;
  return changedAt(question, question.params.start, {
    set: { elicitationId: JSON.stringify(unguessableId()) },
  });
}

async function answered(upper: Exchange, question: Message, signal: AbortSignal): Promise<string> {
  const answer = await upper.ask(question, { signal, onNotification: () => {} });
  if (answer.kind === 'result' && answer.body) return textOf(answer, answer.body);
  const said = stringIn(answer, bodyOf(answer, 'message')) ?? 'no reason given';
  const { serverId } = upper;
  throw new GatewayError('agent_unreachable', `The agent refused ${question.method}: ${said}`, { serverId });
}

function withInputs(message: Message, responses: string | undefined, state: string | undefined): Message {
  const set = {
    ...(responses === undefined ? {} : { inputResponses: responses }),
    ...(state === undefined ? {} : { requestState: state }),
  };
  return message.params ? changedAt(message, message.params.start, { set }) : message;
}

function pause(clock: Clock, { signal, serverId }: Exchange): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      timer.cancel();
      reject(new GatewayError('cancelled', 'The request was cancelled', { serverId }));
    };
    const timer = clock.after(PAUSE_MS, () => {
      signal.removeEventListener('abort', stop);
      resolve();
    });
    signal.addEventListener('abort', stop, { once: true });
  });
}

function misbehaved(serverId: string, what: string): GatewayError {
  return new GatewayError('server_protocol', `Server "${serverId}" ${what}`, { serverId });
}
