import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { Exchange } from '../pipeline/exchange.js';
import { mayAskForInput } from '../protocol/methods.js';
import { memberEdits } from '../wire/members.js';
import type { Message } from '../wire/message.js';
import { edited } from './edited.js';
import { misbehaved, withdrawn } from './faults.js';
import { isInputRequired } from './legacy-answer.js';
import { bodyOf, stringIn, textOf } from './members.js';
import { answersTo, type Patience, questionsIn } from './questions.js';

/** Rounds that one call may take: a server that asks for ever asks in vain. */
const MAX_ROUNDS = 10;
/** Before a request is sent again for which nothing was asked. */
const PAUSE_MS = 250;

export interface RoundsOptions extends Patience {
  /** Sends the request once; each time it is another one to the server. */
  readonly send: (message: Message) => Promise<Message>;
}

/**
 * Sends a request as often as its server answers `input_required`, and brings it what it asks of the agent, by requests
 * on the agent's own stream. Resolves to the last answer. Rejects with GatewayError.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
 */
export async function inRounds(upper: Exchange, message: Message, options: RoundsOptions): Promise<Message> {
  let answer = await options.send(message);
  for (let round = 0; isInputRequired(answer); round++) {
    const { serverId, signal } = upper;
    if (round === MAX_ROUNDS)
      throw misbehaved(serverId, `asked for input more than ${MAX_ROUNDS} times in one call`);
    const inputs = await inputsFor(answer, upper, options);
    if (signal.aborted) throw withdrawn(serverId);
    answer = await again(options.send(withInputs(message, inputs)), serverId);
  }
  return answer;
}

/** JSON texts of what a request brings when it is sent again; undefined: nothing of the kind. */
interface Inputs {
  readonly responses: string | undefined;
  readonly state: string | undefined;
}

async function inputsFor(answer: Message, upper: Exchange, options: RoundsOptions): Promise<Inputs> {
  const { serverId, message, signal } = upper;
  if (!mayAskForInput(message.method)) throw misbehaved(serverId, 'asks for input where it must not');
  const requests = bodyOf(answer, 'inputRequests');
  const state = bodyOf(answer, 'requestState');
  if (state && stringIn(answer, state) === undefined)
    throw misbehaved(serverId, 'gave a requestState that is no text');
  const questions = requests && questionsIn(upper, answer, requests);
  const asks = questions !== undefined && questions.size > 0;
  if (!asks && !state) throw misbehaved(serverId, 'requires input and does not say which');
  const responses = asks ? await answersTo(questions, upper, options) : undefined;
  if (!asks) await pause(PAUSE_MS, options.clock, signal);
  return { responses, state: state && textOf(answer, state) };
}

function withInputs(message: Message, { responses, state }: Inputs): Message {
  const set = {
    ...(responses === undefined ? {} : { inputResponses: responses }),
    ...(state === undefined ? {} : { requestState: state }),
  };
  const { bytes, params } = message;
  return params ? edited(message, memberEdits(bytes, params.start, { set })) : message;
}

/** A call that has begun cannot begin anew on a server of another kind. */
async function again(sent: Promise<Message>, serverId: string): Promise<Message> {
  try {
    return await sent;
  } catch (failure) {
    if (!(failure instanceof GatewayError) || failure.code !== 'other_era') throw failure;
    const what = `Server "${serverId}" became another one while its call was under way`;
    throw new GatewayError('server_unavailable', what, { serverId, cause: failure });
  }
}

/** Resolves after so long, or as soon as the signal is aborted. */
export function pause(delayMs: number, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const over = () => {
      timer.cancel();
      signal.removeEventListener('abort', over);
      resolve();
    };
    const timer = clock.after(delayMs, over);
    signal.addEventListener('abort', over);
  });
}
