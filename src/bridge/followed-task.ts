import { GatewayError } from '../base/errors.js';
import type { Exchange } from '../pipeline/exchange.js';
import { MISSING_CLIENT_CAPABILITY } from '../protocol/codes.js';
import { TASKS_EXTENSION } from '../protocol/meta.js';
import { errorCodeOf } from '../wire/error-code.js';
import { forEachMember, type Span, valueAt } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';
import { type Envelope, metaText } from './envelope.js';
import { misbehaved, withdrawn } from './faults.js';
import { bodyOf, isObject, stringIn, textOf } from './members.js';
import { answersTo, type Patience, questionsIn } from './questions.js';
import { pause } from './rounds.js';

/** How often a task is looked at where its server does not say, and the bounds of what it may say. */
const INTERVAL_MS = 1_000;
const MIN_INTERVAL_MS = 100;
const MAX_INTERVAL_MS = 30_000;

/** Whether a server refused a call for nothing but that its client does not follow tasks. It did not run. */
export function needsTasks(answer: Message): boolean {
  if (errorCodeOf(answer) !== MISSING_CLIENT_CAPABILITY) return false;
  const required = bodyOf(answer, 'data', 'requiredCapabilities');
  const extensions = bodyOf(answer, 'data', 'requiredCapabilities', 'extensions');
  return isOnly(answer, required, 'extensions') && isOnly(answer, extensions, TASKS_EXTENSION);
}

function isOnly(answer: Message, span: Span | undefined, wanted: string): boolean {
  if (!isObject(answer, span)) return false;
  const names: string[] = [];
  forEachMember(answer.bytes, span.start, (name) => names.push(name));
  return names.length === 1 && names[0] === wanted;
}

export interface TaskOptions extends Patience {
  readonly envelope: Envelope;
  readonly send: (message: Message) => Promise<Message>;
  /** The same for what must reach the server though the agent waits no more. */
  readonly sendAnyway: (message: Message) => Promise<Message>;
}

/**
 * A call of an agent that knows no tasks, which its server made one: looked at until it has ended, with the agent's
 * answers to what it needs. Whoever gives up the call cancels the task.
 * https://modelcontextprotocol.io/extensions/tasks/overview
 */
export class FollowedTask {
  readonly #upper: Exchange;
  readonly #options: TaskOptions;
  /** JSON text. */
  readonly #taskId: string;
  /** Questions that the agent has answered: they may be shown again until the server has noticed. */
  readonly #answered = new Set<string>();
  #isOver = false;

  /** Throws GatewayError `server_protocol` where `created` names no task. */
  constructor(upper: Exchange, created: Message, options: TaskOptions) {
    this.#upper = upper;
    this.#options = options;
    const taskId = bodyOf(created, 'taskId');
    if (!taskId || stringIn(created, taskId) === undefined)
      throw misbehaved(upper.serverId, 'made a task without a taskId');
    this.#taskId = textOf(created, taskId);
  }

  /** Resolves to what the call would have been answered without a task. Rejects with GatewayError. */
  async end(created: Message): Promise<Message> {
    const { clock, send } = this.#options;
    const { signal, serverId } = this.#upper;
    try {
      for (let state = created; ; ) {
        await pause(intervalMs(state), clock, signal);
        if (signal.aborted) throw withdrawn(serverId);
        state = await send(this.#request('tasks/get'));
        const outcome = state.kind === 'error' ? state : await this.#look(state);
        if (outcome) return outcome;
      }
    } catch (failure) {
      if (!this.#isOver) void this.#options.sendAnyway(this.#request('tasks/cancel')).catch(() => {});
      throw failure;
    }
  }

  /** The outcome of a task that has ended. */
  async #look(state: Message): Promise<Message | undefined> {
    const { serverId, message } = this.#upper;
    const status = stringIn(state, bodyOf(state, 'status'));
    this.#isOver = status === 'completed' || status === 'failed' || status === 'cancelled';
    switch (status) {
      case 'working':
        return undefined;
      case 'input_required':
        return await this.#answer(state);
      case 'completed':
      case 'failed': {
        const member = status === 'completed' ? 'result' : 'error';
        const outcome = bodyOf(state, member);
        if (!outcome) throw misbehaved(serverId, `ended a task without its ${member}`);
        const text = `{"jsonrpc":"2.0","id":${message.id},"${member}":${textOf(state, outcome)}}`;
        return readMessage(Buffer.from(text));
      }
      case 'cancelled':
        throw new GatewayError('cancelled', `Server "${serverId}" cancelled the call`, { serverId });
      default:
        throw misbehaved(serverId, 'gave a task a status that is none');
    }
  }

  async #answer(state: Message): Promise<undefined> {
    const requests = bodyOf(state, 'inputRequests');
    const questions = requests ? questionsIn(this.#upper, state, requests) : new Map<string, Message>();
    for (const key of this.#answered) questions.delete(key);
    if (questions.size === 0) return;
    const responses = await answersTo(questions, this.#upper, this.#options);
    for (const key of questions.keys()) this.#answered.add(key);
    const refused = await this.#options.send(this.#request('tasks/update', `,"inputResponses":${responses}`));
    if (refused.kind === 'error')
      throw misbehaved(this.#upper.serverId, 'refused the answers that it asked for');
  }

  #request(method: string, more = ''): Message {
    const { message } = this.#upper;
    const params = `{"_meta":${metaText(this.#options.envelope)},"taskId":${this.#taskId}${more}}`;
    const text = `{"jsonrpc":"2.0","id":${message.id},"method":"${method}","params":${params}}`;
    return readMessage(Buffer.from(text));
  }
}

function intervalMs(state: Message): number {
  const span = bodyOf(state, 'pollIntervalMs');
  const wanted = span && valueAt(state.bytes, span);
  return typeof wanted === 'number'
    ? Math.min(Math.max(wanted, MIN_INTERVAL_MS), MAX_INTERVAL_MS)
    : INTERVAL_MS;
}
