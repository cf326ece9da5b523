import type { Clock, Timer } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { Exchange, Handler } from '../pipeline/exchange.js';
import { TASKS_EXTENSION } from '../protocol/meta.js';
import { type Message, readMessage } from '../wire/message.js';
import { declares } from './askable.js';
import { BridgedCall } from './bridged-call.js';
import { inputRequestsText, inputsOf } from './input-required.js';
import { bodyOf, changedAt, isObject, paramOf, stringIn } from './members.js';
import { modernAnswer } from './modern-answer.js';
import type { PseudoAgent } from './pseudo-agents.js';
import { createdTask, outcomeMembers, resultOf, statusOf, taskMembers } from './task-shape.js';

export interface LegacyTasksOptions {
  readonly clock: Clock;
  /** How long the result of a task that asks is waited for on behalf of an agent that is silent. */
  readonly parkMs: number;
  readonly maxParkedCalls: number;
}

/** One request to the legacy server, in the name of the agent's. */
export type Ask = (message: Message) => Promise<Message>;

interface Watch {
  readonly call: BridgedCall;
  timer: Timer;
}

const METHODS: ReadonlySet<string> = new Set(['tasks/get', 'tasks/update', 'tasks/cancel']);
const COMPLETE = '"resultType":"complete"';

/**
 * Tasks of a legacy server for agents that know them as an extension: created where the server wants one, looked at by
 * `tasks/get`, which brings results and questions along.
 */
export class LegacyTasks {
  readonly #options: LegacyTasksOptions;
  /** Waits for results of tasks that ask, by agent and task. */
  readonly #watches = new Map<string, Watch>();

  constructor(options: LegacyTasksOptions) {
    this.#options = options;
  }

  handles(method: string): boolean {
    return METHODS.has(method);
  }

  /** Answers a request of the extension. Throws GatewayError `capability_missing` for an agent that did not declare it. */
  async handle(upper: Exchange, agent: PseudoAgent, ask: Ask, next: Handler): Promise<Message> {
    requireExtension(upper);
    const { id, method } = upper.message;
    const taskId = stringIn(upper.message, paramOf(upper.message, 'taskId'));
    if (taskId === undefined)
      throw new GatewayError('invalid_params', '`taskId` must be a text', { serverId: upper.serverId });
    if (method === 'tasks/get') return await this.#get(upper, agent, taskId, ask, next);
    if (method === 'tasks/update') return this.#update(upper, agent, taskId);
    const answer = await ask(request(id, 'tasks/cancel', taskId));
    this.#end(watchKey(agent, taskId), 'The task was cancelled');
    return answer.kind === 'error' ? modernAnswer(answer) : resultOf(id, [COMPLETE]);
  }

  /** Runs a call as a task, which its tool demands. Throws as `handle` does. */
  async create(upper: Exchange, call: Message, ask: Ask): Promise<Message> {
    requireExtension(upper);
    const answer = await ask(
      call.params ? changedAt(call, call.params.start, { set: { task: '{}' } }) : call,
    );
    const task = createdTask(answer);
    if (!task) return modernAnswer(answer);
    return resultOf(upper.message.id, ['"resultType":"task"', taskMembers(answer, task)]);
  }

  close(): void {
    for (const key of [...this.#watches.keys()]) this.#end(key, 'The gateway is shutting down');
  }

  async #get(upper: Exchange, agent: PseudoAgent, taskId: string, ask: Ask, next: Handler): Promise<Message> {
    const { id } = upper.message;
    const answer = await ask(request(id, 'tasks/get', taskId));
    if (!isObject(answer, answer.body) || answer.kind === 'error') return modernAnswer(answer);
    switch (statusOf(answer)) {
      case 'completed':
      case 'failed': {
        this.#end(watchKey(agent, taskId), 'The task is over');
        const outcome = outcomeMembers(await ask(request(id, 'tasks/result', taskId)));
        const plain = changedAt(answer, answer.body.start, { remove: ['status'] });
        return resultOf(id, [COMPLETE, ...outcome, plain.body ? taskMembers(plain, plain.body) : '']);
      }
      case 'input_required': {
        const questions = await this.#watch(upper, agent, taskId, next).questions();
        const asked = `"inputRequests":${inputRequestsText(questions)}`;
        return resultOf(id, [COMPLETE, asked, taskMembers(answer, answer.body)]);
      }
      default:
        return resultOf(id, [COMPLETE, taskMembers(answer, answer.body)]);
    }
  }

  #update(upper: Exchange, agent: PseudoAgent, taskId: string): Message {
    const watch = this.#watches.get(watchKey(agent, taskId));
    if (!watch) {
      const what = 'Nothing is asked for this task; `tasks/get` tells what is';
      throw new GatewayError('invalid_params', what, { serverId: upper.serverId });
    }
    const { responses } = inputsOf(upper.message, upper.serverId);
    for (const [key, response] of responses) watch.call.answer(key, response);
    return resultOf(upper.message.id, [COMPLETE]);
  }

  /** A legacy server asks on the stream of whoever waits for the result, so somebody must. */
  #watch(upper: Exchange, agent: PseudoAgent, taskId: string, next: Handler): BridgedCall {
    const key = watchKey(agent, taskId);
    const known = this.#watches.get(key);
    known?.timer.cancel();
    const call = known?.call ?? this.#begin(upper, agent, taskId, next);
    const expire = () => this.#end(key, 'The agent did not bring what was asked');
    this.#watches.set(key, { call, timer: this.#options.clock.after(this.#options.parkMs, expire) });
    return call;
  }

  #begin(upper: Exchange, agent: PseudoAgent, taskId: string, next: Handler): BridgedCall {
    const { clock, maxParkedCalls } = this.#options;
    if (this.#watches.size >= maxParkedCalls) {
      const what = 'Too many tasks wait for their agents; try again later';
      throw new GatewayError('at_capacity', what, { serverId: upper.serverId });
    }
    const message = request(upper.message.id, 'tasks/result', taskId);
    const place = { take: () => true, give: () => {} };
    const call = new BridgedCall({ upper, message, agent, clock, place });
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
  const why = `Server "${serverId}" makes a task of this, and the agent did not declare that it knows tasks`;
  throw new GatewayError('capability_missing', why, { serverId, data });
}

function watchKey(agent: PseudoAgent, taskId: string): string {
  return `${agent.id} ${taskId}`;
}

function request(id: string, method: string, taskId: string): Message {
  const params = `{"taskId":${JSON.stringify(taskId)}}`;
  return readMessage(
    Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}`),
  );
}
