import { GatewayError } from '../base/errors.js';
import type { Agent, Exchange, Handler } from '../pipeline/exchange.js';
import type { Message } from '../wire/message.js';
import { type Envelope, enveloped, modernExchange, withTasks } from './envelope.js';
import { readingParams } from './faults.js';
import { FollowedTask, needsTasks } from './followed-task.js';
import { resultTypeOf } from './legacy-answer.js';
import { isObject, paramOf } from './members.js';
import type { Patience } from './questions.js';
import { inRounds } from './rounds.js';

const TASK = Buffer.from('"task"');
const ESCAPE = Buffer.from('\\u');

/** How a legacy agent is spoken for in a request. */
export interface ModernCallOptions extends Patience {
  readonly agent: Agent;
  readonly envelope: Envelope;
  /** Least severe level of log messages that it hears. */
  readonly level: string | undefined;
}

/**
 * Takes a legacy agent's request to a modern server, with all that the server needs in between. Resolves to the answer in
 * the server's own form. Rejects with GatewayError.
 */
export async function modernCall(
  upper: Exchange,
  next: Handler,
  options: ModernCallOptions,
): Promise<Message> {
  const { serverId, message } = upper;
  const { agent, envelope, level } = options;
  const isCall = message.method === 'tools/call';
  if (isCall) refuseTask(upper);
  const send = (request: Message) => next(modernExchange(upper, agent, request, level));
  const within = (envelope: Envelope) =>
    inRounds(
      upper,
      readingParams(serverId, () => enveloped(message, envelope, serverId)),
      { ...options, send },
    );
  const answer = await within(envelope);
  if (!isCall || answer.kind !== 'error' || !needsTasks(answer)) return answer;
  const declaring = withTasks(envelope);
  const created = await within(declaring);
  if (resultTypeOf(created) !== 'task') return created;
  const sendAnyway = (request: Message) =>
    next({ ...modernExchange(upper, agent, request), signal: new AbortController().signal });
  const task = new FollowedTask(upper, created, { ...options, envelope: declaring, send, sendAnyway });
  return await task.end(created);
}

/**
 * Revision 2025-11-25 lets agents ask for a task; in 2026-07-28 the server decides.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks
 */
function refuseTask({ serverId, message }: Exchange): void {
  if (!message.bytes.includes(TASK) && !message.bytes.includes(ESCAPE)) return;
  const task = readingParams(serverId, () => isObject(message, message.params) && paramOf(message, 'task'));
  if (!task) return;
  const what = `Server "${serverId}" decides itself what becomes a task: send the call without \`task\``;
  throw new GatewayError('invalid_params', what, { serverId });
}
