import { GatewayError } from '../base/errors.js';
import type { Exchange } from '../pipeline/exchange.js';
import { INVALID_PARAMS } from '../protocol/codes.js';
import { error, result } from '../protocol/compose.js';
import { severity } from '../protocol/log-levels.js';
import { type Edit, items, JsonError, member, splice, valueAt } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import type { Audience } from './audience.js';
import { stringParam } from './rewrite.js';

/** What a server keeps for a connection though every agent on it wants its own: subscriptions, log level, tasks. */
export interface SharedState {
  readonly exchange: Exchange;
  readonly audience: Audience;
  readonly ownerOfTask: (taskId: string) => string | undefined;
  /** A request of the gateway's own to the server. */
  readonly tell: (method: string, params: object) => void;
}

type Forward = () => Promise<Message>;

/**
 * Answers a request that touches shared state, forwarding it where the server has to know; all others are forwarded.
 * Rejects with `invalid_request` where a member that must be read is given twice.
 */
export async function answerLocally(state: SharedState, forward: Forward): Promise<Message> {
  try {
    return await answer(state, forward);
  } catch (failure) {
    if (!(failure instanceof JsonError)) throw failure;
    const { serverId } = state.exchange;
    throw new GatewayError('invalid_request', failure.message, { serverId });
  }
}

function answer(state: SharedState, forward: Forward): Promise<Message> {
  switch (state.exchange.message.method) {
    case 'resources/subscribe':
      return subscribe(state, forward);
    case 'resources/unsubscribe':
      return unsubscribe(state, forward);
    case 'logging/setLevel':
      return setLevel(state, forward);
    case 'tasks/get':
    case 'tasks/result':
    case 'tasks/cancel':
      return ownTask(state, forward);
    case 'tasks/list':
      return ownTasks(state, forward);
    default:
      return forward();
  }
}

/**
 * Noted before it is sent: another agent that unsubscribes meanwhile must not end it. A request that was given up may have
 * come to the server, or still will.
 */
async function subscribe({ exchange, audience, tell }: SharedState, forward: Forward): Promise<Message> {
  const uri = stringParam(exchange.message, 'uri');
  const added = uri !== undefined && audience.subscribe(exchange.agent, uri);
  const undo = () => added && audience.unsubscribe(exchange.agent, uri);
  try {
    const answer = await forward();
    if (answer.kind === 'error') undo();
    else if (added) audience.subscribed(exchange.agent, uri);
    return answer;
  } catch (failure) {
    undo();
    if (added && !audience.hasSubscriber(uri)) tell('resources/unsubscribe', { uri });
    throw failure;
  }
}

/** The server hears of it when nobody is left, and of whoever came meanwhile: the two may overtake each other. */
async function unsubscribe({ exchange, audience, tell }: SharedState, forward: Forward): Promise<Message> {
  const uri = stringParam(exchange.message, 'uri');
  if (uri === undefined) return forward();
  audience.unsubscribe(exchange.agent, uri);
  if (audience.hasSubscriber(uri)) return result(exchange.message.id, {});
  const answer = await forward();
  if (audience.hasSubscriber(uri)) tell('resources/subscribe', { uri });
  return answer;
}

/** The server is told the most verbose level that any agent wants; each agent is then given what it asked for. */
async function setLevel({ exchange, audience, tell }: SharedState, forward: Forward): Promise<Message> {
  const wanted = stringParam(exchange.message, 'level');
  if (severity(wanted) < 0) return forward();
  const told = audience.level();
  const before = audience.setLevel(exchange.agent, wanted);
  const level = audience.level();
  if (level !== wanted) {
    if (level !== told) tell('logging/setLevel', { level });
    return result(exchange.message.id, {});
  }
  const undo = () => audience.setLevel(exchange.agent, before);
  try {
    const answer = await forward();
    if (answer.kind === 'error') undo();
    return answer;
  } catch (failure) {
    undo();
    throw failure;
  }
}

/** Another agent's task is as unknown as one that never was. */
async function ownTask({ exchange, audience, ownerOfTask }: SharedState, forward: Forward): Promise<Message> {
  const taskId = stringParam(exchange.message, 'taskId');
  const owner = taskId === undefined ? undefined : ownerOfTask(taskId);
  if (owner === undefined || owner === exchange.agent.id || !audience.get(owner)) return forward();
  return error(exchange.message.id, INVALID_PARAMS, 'Task not found');
}

/**
 * The server's list without the tasks of others; the items that stay keep their bytes. A task from before our time is
 * shown to the only agent there is.
 */
async function ownTasks(state: SharedState, forward: Forward): Promise<Message> {
  const answer = await forward();
  try {
    return onlyOwn(answer, state);
  } catch (failure) {
    if (!(failure instanceof JsonError)) throw failure;
    const { serverId } = state.exchange;
    const why = `Server "${serverId}" answered tasks/list ambiguously: ${failure.message}`;
    throw new GatewayError('server_protocol', why, { serverId });
  }
}

function onlyOwn(answer: Message, { exchange, audience, ownerOfTask }: SharedState): Message {
  const list = answer.kind === 'result' && answer.body && member(answer.bytes, answer.body.start, 'tasks');
  const all = list && items(answer.bytes, list.start);
  if (!list || !all) return answer;
  const isOwn = (at: number) => {
    const id = member(answer.bytes, at, 'taskId');
    const owner = id && ownerOfTask(String(valueAt(answer.bytes, id)));
    return owner === undefined ? audience.size === 1 : owner === exchange.agent.id;
  };
  const own = all.filter(({ start }) => isOwn(start));
  if (own.length === all.length) return answer;
  const text = `[${own.map((item) => answer.bytes.toString('utf8', item.start, item.end)).join(',')}]`;
  return withEdit(answer, { ...list, text });
}

/** An answer with one range of its body replaced, the id's range kept right. */
function withEdit(answer: Message, edit: Edit): Message {
  const grown = Buffer.byteLength(edit.text) - (edit.end - edit.start);
  const id = answer.idSpan;
  const moved = id && id.start > edit.start ? { start: id.start + grown, end: id.end + grown } : id;
  const body = answer.body && { start: answer.body.start, end: answer.body.end + grown };
  return { ...answer, bytes: splice(answer.bytes, [edit]), idSpan: moved, body };
}
