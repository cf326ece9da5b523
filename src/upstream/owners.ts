import { BoundedMap } from '../base/bounded-map.js';
import type { Exchange } from '../pipeline/exchange.js';
import { member } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import { mentions, stringInBody, stringParam } from './rewrite.js';

const RELATED_TASK = 'io.modelcontextprotocol/related-task';
const MAX_OWNED = 10_000;
/** Stands for several agents that chose the same id. */
const NOBODY = '';

/** What a message says of whom it is for: an agent, or something that nobody is known to own. */
export interface Sign {
  readonly agentId: string | undefined;
}

/** Tasks and elicitations, and the agents they belong to, as far as messages told. */
export class Owners {
  readonly #agents = new BoundedMap<string, string>(MAX_OWNED);

  /** The agent that began a task, if it is known. */
  ofTask(taskId: string): string | undefined {
    return this.#agents.get(`task:${taskId}`);
  }

  /** Notes what an answer gave its agent; returns the id of the task that it began, if any. */
  noteAnswer({ agent, message }: Exchange, answer: Message): string | undefined {
    if (answer.kind === 'error') {
      for (const id of elicitationIds(answer)) this.#agents.set(`elicitation:${id}`, agent.id);
      return undefined;
    }
    const taskId = mentions(message, 'task') ? stringInBody(answer, 'task', 'taskId') : undefined;
    if (taskId !== undefined) this.#agents.set(`task:${taskId}`, agent.id);
    return taskId;
  }

  /** Notes that a server's question sends an agent somewhere; the server will tell when that is done. */
  noteQuestion(question: Message, agentId: string): void {
    const id = mentions(question, 'elicitationId') ? stringParam(question, 'elicitationId') : undefined;
    if (id !== undefined) this.#agents.set(`elicitation:${id}`, agentId);
  }

  /** Notes the task that an agent made of a server's question: the server will ask that same agent for it. */
  noteAskedTask(question: Message, answer: Message, agentId: string): void {
    if (answer.kind !== 'result' || !mentions(question, 'task')) return;
    const taskId = stringInBody(answer, 'task', 'taskId');
    if (taskId === undefined) return;
    const key = `asked task:${taskId}`;
    const before = this.#agents.get(key);
    // Agents choose these ids: of two that chose the same one, neither is asked about the other's task.
    this.#agents.set(key, before === undefined || before === agentId ? agentId : NOBODY);
  }

  /** The sign that a message of the server carries; undefined where it carries none. */
  signOf(message: Message): Sign | undefined {
    const key = signKey(message);
    return key === undefined ? undefined : { agentId: this.#agents.get(key) };
  }
}

function signKey(message: Message): string | undefined {
  const { method } = message;
  const key = (kind: string, id: string | undefined) => (id === undefined ? undefined : `${kind}:${id}`);
  const related = mentions(message, RELATED_TASK)
    ? stringParam(message, '_meta', RELATED_TASK, 'taskId')
    : undefined;
  if (related !== undefined) return key('task', related);
  if (method.startsWith('notifications/tasks/')) return key('task', stringParam(message, 'taskId'));
  if (method.startsWith('tasks/')) return key('asked task', stringParam(message, 'taskId'));
  if (method === 'notifications/elicitation/complete')
    return key('elicitation', stringParam(message, 'elicitationId'));
  return undefined;
}

/** Ids of the elicitations that a URL-elicitation-required error asks for. */
function elicitationIds(answer: Message): string[] {
  const { bytes, body } = answer;
  const data = body && mentions(answer, 'elicitationId') ? member(bytes, body.start, 'data') : undefined;
  if (!data) return [];
  const parsed = JSON.parse(bytes.toString('utf8', data.start, data.end)) as {
    elicitations?: { elicitationId?: unknown }[];
  } | null;
  const list = parsed?.elicitations;
  if (!Array.isArray(list)) return [];
  return list.map((one) => one?.elicitationId).filter((id): id is string => typeof id === 'string');
}
