import type { Clock, Timer } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import { unguessableId } from '../base/random.js';
import type { Exchange } from '../pipeline/exchange.js';
import { request } from '../protocol/compose.js';
import { TASKS_EXTENSION } from '../protocol/meta.js';
import type { Message } from '../wire/message.js';
import { declares } from './askable.js';
import { BridgedCall } from './bridged-call.js';
import type { BridgedRequest } from './bridged-request.js';
import { readingParams } from './faults.js';
import { inputRequestsText, inputsOf } from './input-required.js';
import { bodyOf, isObject, paramOf, stringIn } from './members.js';
import { modernAnswer } from './modern-answer.js';
import type { Place } from './parking-room.js';
import type { PseudoAgent } from './pseudo-agents.js';
import {
  asTask,
  COMPLETE,
  createdTask,
  outcomeMembers,
  resultOf,
  statusOf,
  taskMembers,
} from './task-shape.js';

export interface LegacyTasksOptions {
  readonly clock: Clock;
  /** How long a task's questions are held for an agent that is silent. */
  readonly parkMs: number;
  readonly maxParkedCalls: number;
  readonly placeFor: (upper: Exchange) => Place;
}

/** Whoever waits for a task's result, so that its server can ask. */
interface Watch {
  readonly call: BridgedCall;
  readonly timer: Timer;
}

/** A server that says it asks has most often asked by then. */
const ASKED_WITHIN_MS = 1_000;

/**
 * Tasks of legacy servers for agents that know them as an extension. `tasks/get` brings along what 2025-11-25 has other
 * ways for: results, and questions, which a legacy server asks on the stream of whoever waits for the result.
 * https://modelcontextprotocol.io/extensions/tasks/overview
 */
export class LegacyTasks {
  readonly #options: LegacyTasksOptions;
  /** By agent and task. */
  readonly #watches = new Map<string, Watch>();

  constructor(options: LegacyTasksOptions) {
    this.#options = options;
  }

  /** Runs a call as a task. Throws GatewayError `capability_missing` for an agent that does not know them. */
  async create(bridged: BridgedRequest): Promise<Message> {
    const { upper } = bridged;
    requireExtension(upper);
    const answer = await bridged.plain(asTask(bridged.message));
    const task = createdTask(answer);
    if (!task) return modernAnswer(answer);
    return resultOf(upper.message.id, ['"resultType":"task"', taskMembers(answer, task)]);
  }

  /** Answers a request of the extension. Throws as `create` does, and `invalid_params`. */
  async handle(bridged: BridgedRequest): Promise<Message> {
    const { upper } = bridged;
    requireExtension(upper);
    const { serverId, message } = upper;
    const taskId = readingParams(serverId, () => stringIn(message, paramOf(message, 'taskId')));
    if (taskId === undefined)
      throw new GatewayError('invalid_params', 'taskId must be a string', { serverId });
    switch (message.method) {
      case 'tasks/get':
        return await this.#get(bridged, taskId);
      case 'tasks/update':
        return await this.#update(bridged, taskId);
      default:
        return await this.#cancel(bridged, taskId);
    }
  }

  close(): void {
    for (const key of [...this.#watches.keys()]) this.#end(key, 'The gateway is shutting down');
  }

  async #get(bridged: BridgedRequest, taskId: string): Promise<Message> {
    const { id } = bridged.upper.message;
    const answer = await bridged.own('tasks/get', { taskId });
    if (answer.kind === 'error' || !isObject(answer, answer.body)) return modernAnswer(answer);
    switch (statusOf(answer)) {
      case 'completed':
      case 'failed': {
        this.#end(watchKey(bridged.agent, taskId), 'The task is over');
        const outcome = outcomeMembers(await bridged.own('tasks/result', { taskId }));
        return resultOf(id, [COMPLETE, ...outcome, taskMembers(answer, answer.body, 'status')]);
      }
      case 'input_required': {
        const questions = await this.#watch(bridged, taskId).questions(ASKED_WITHIN_MS);
        if (questions.length > 0)
          return resultOf(id, [
            ...[COMPLETE, `"inputRequests":${inputRequestsText(questions)}`],
            taskMembers(answer, answer.body),
          ]);
        // A task that requires input says which: the next look will tell.
        return resultOf(id, [COMPLETE, '"status":"working"', taskMembers(answer, answer.body, 'status')]);
      }
      default:
        return resultOf(id, [COMPLETE, taskMembers(answer, answer.body)]);
    }
  }

  /** What is not asked any more is answered in vain, but an unknown task is an error. */
  async #update(bridged: BridgedRequest, taskId: string): Promise<Message> {
    const { serverId, message } = bridged.upper;
    const { responses } = readingParams(serverId, () => inputsOf(message, serverId));
    const watch = this.#watches.get(watchKey(bridged.agent, taskId));
    for (const [key, response] of responses) watch?.call.answer(key, response);
    const answer = watch ? undefined : await bridged.own('tasks/get', { taskId });
    return answer?.kind === 'error' ? modernAnswer(answer) : resultOf(message.id, [COMPLETE]);
  }

  /** A legacy server refuses to cancel what is over; here that is no error, but an unknown task is. */
  async #cancel(bridged: BridgedRequest, taskId: string): Promise<Message> {
    const answer = await bridged.own('tasks/cancel', { taskId });
    this.#end(watchKey(bridged.agent, taskId), 'The task was cancelled');
    const isKnown =
      answer.kind === 'result' || (await bridged.own('tasks/get', { taskId })).kind === 'result';
    return isKnown ? resultOf(bridged.upper.message.id, [COMPLETE]) : modernAnswer(answer);
  }

  #watch(bridged: BridgedRequest, taskId: string): BridgedCall {
    const key = watchKey(bridged.agent, taskId);
    const known = this.#watches.get(key);
    known?.timer.cancel();
    const call = known && !known.call.over ? known.call : this.#begin(bridged, taskId);
    const expire = () => this.#end(key, 'The agent did not bring what was asked');
    this.#watches.set(key, { call, timer: this.#options.clock.after(this.#options.parkMs, expire) });
    return call;
  }

  #begin({ upper, agent, next }: BridgedRequest, taskId: string): BridgedCall {
    const { clock, maxParkedCalls, placeFor } = this.#options;
    if (this.#watches.size >= maxParkedCalls) {
      const what = 'As many tasks wait for their agents as may; try again later';
      throw new GatewayError('at_capacity', what, { serverId: upper.serverId });
    }
    const message = request('1', 'tasks/result', { taskId });
    // No key is used twice in the life of a task, which may be longer than ours.
    const keyPrefix = `${unguessableId().slice(0, 10)}-`;
    const call = new BridgedCall({ upper, message, agent, clock, place: placeFor(upper), keyPrefix });
    call.begin((exchange) => agent.during(() => next(exchange), call));
    return call;
  }

  #end(key: string, why: string): void {
    const watch = this.#watches.get(key);
    if (!watch) return;
    this.#watches.delete(key);
    watch.timer.cancel();
    watch.call.abort(new GatewayError('cancelled', why, { serverId: watch.call.serverId }));
  }
}

/** Whether an InitializeResult says that calls of tools may become tasks. */
export function offersTasks(greeting: Message): boolean {
  return isObject(greeting, bodyOf(greeting, 'capabilities', 'tasks', 'requests', 'tools', 'call'));
}

function requireExtension({ agent, serverId }: Exchange): void {
  if (declares(agent.profile, 'extensions', TASKS_EXTENSION)) return;
  const data = { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } };
  const why = `Server "${serverId}" makes a task of this, and its agent did not declare that it knows tasks`;
  throw new GatewayError('capability_missing', why, { serverId, data });
}

function watchKey(agent: PseudoAgent, taskId: string): string {
  return `${agent.id} ${taskId}`;
}
