import { BoundedMap } from '../base/bounded-map.js';
import { messageOf } from '../base/errors.js';
import type { ChangeBus } from '../pipeline/changes.js';
import type { EventSink } from '../pipeline/events.js';
import type { Agent, Channel, Exchange } from '../pipeline/exchange.js';
import { INTERNAL_ERROR, METHOD_NOT_FOUND } from '../protocol/codes.js';
import { error, result } from '../protocol/compose.js';
import { listChangedKind } from '../protocol/methods.js';
import { member } from '../wire/json.js';
import { idKey, type Message, withId } from '../wire/message.js';
import type { Audience } from './audience.js';
import type { Connection } from './connection.js';
import type { Pending } from './pending.js';
import { mentions, paramOf, stringInBody, stringParam, textOf, withText } from './rewrite.js';

const RELATED_TASK = 'io.modelcontextprotocol/related-task';
const MAX_OWNED = 10_000;

/** The capability an agent must have declared before a server may ask it. */
const CAPABILITY: Readonly<Record<string, string>> = {
  'sampling/createMessage': 'sampling',
  'elicitation/create': 'elicitation',
  'roots/list': 'roots',
};

/** Progress of a task goes on after its first answer, under the token of the request that began it. */
interface LateProgress {
  readonly agentId: string;
  readonly token: string;
}

export interface InboundDeps {
  readonly serverId: string;
  readonly audience: Audience;
  readonly changes: ChangeBus;
  readonly emit: EventSink;
}

/**
 * What a server says on its own account, brought to the one agent it is meant for. On the stream of a request it belongs
 * to that request. Elsewhere its token, task or elicitation tells; else it is the only agent attached, or, on a link
 * without streams of its own for each request, the agent of the only request under way. Where nothing tells, nobody gets it.
 */
export class Inbound {
  readonly #deps: InboundDeps;
  /** Agent id by task or elicitation id. */
  readonly #owners = new BoundedMap<string, string>(MAX_OWNED);
  readonly #lateProgress = new BoundedMap<string, LateProgress>(MAX_OWNED);
  /** What the server asked and no agent answered yet, by the server's id. */
  readonly #asked = new Map<string, AbortController>();

  constructor(deps: InboundDeps) {
    this.#deps = deps;
  }

  take(connection: Connection, message: Message, origin: Pending | undefined): void {
    if (message.kind === 'request') this.#ask(connection, message, origin);
    else this.#notification(connection, message, origin);
  }

  /** Remembers what an answer gave its agent: tasks and elicitations of which the server will speak later. */
  answered(pending: Pending, exchange: Exchange, answer: Message): void {
    const agentId = exchange.agent.id;
    if (answer.kind === 'result' && mentions(exchange.message, 'task')) {
      const taskId = stringInBody(answer, 'task', 'taskId');
      if (taskId === undefined) return;
      this.#owners.set(`task:${taskId}`, agentId);
      if (pending.progressToken !== undefined)
        this.#lateProgress.set(pending.wireId, { agentId, token: pending.progressToken });
    } else if (answer.kind === 'error' && mentions(answer, 'elicitationId')) {
      for (const id of elicitationIds(answer)) this.#owners.set(`elicitation:${id}`, agentId);
    }
  }

  /** The agent that began a task, if it is known. */
  ownerOfTask(taskId: string): string | undefined {
    return this.#owners.get(`task:${taskId}`);
  }

  /** The connection is gone: what it asked is withdrawn from the agents, and its tokens mean nothing any more. */
  withdrawAll(): void {
    for (const asked of this.#asked.values()) asked.abort();
    this.#asked.clear();
    this.#lateProgress.clear();
  }

  #notification(connection: Connection, message: Message, origin: Pending | undefined): void {
    const kind = listChangedKind(message.method);
    if (kind) {
      const tell = () => this.#broadcast(message, origin);
      return this.#deps.changes.publish(
        { serverId: this.#deps.serverId, reason: 'list_changed', kinds: [kind] },
        tell,
      );
    }
    switch (message.method) {
      case 'notifications/progress':
        return this.#progress(connection, message);
      case 'notifications/cancelled':
        return this.#withdraw(message);
      case 'notifications/resources/updated':
        return this.#updated(message);
      case 'notifications/message':
        return this.#log(connection, message, origin);
      default:
        return this.#deliver(message, this.#channel(connection, message, origin));
    }
  }

  /** To everyone once: on the request's own stream where it came on one, on the general streams of the others. */
  #broadcast(message: Message, origin: Pending | undefined): void {
    const first = origin?.exchange;
    first?.notify(message);
    for (const agent of this.#deps.audience.agents()) if (agent.id !== first?.agent.id) agent.notify(message);
  }

  #progress(connection: Connection, message: Message): void {
    const span = paramOf(message, 'progressToken');
    const wireToken = span ? textOf(message, span) : '';
    const pending = connection.pending(wireToken);
    pending?.alive();
    if (span && pending?.exchange && pending.progressToken !== undefined)
      return pending.exchange.notify(withText(message, span, pending.progressToken));
    const late = this.#lateProgress.get(wireToken);
    const agent = late && this.#deps.audience.get(late.agentId);
    if (span && late && agent) return agent.notify(withText(message, span, late.token));
    this.#drop(message, 'no request gave this progress token');
  }

  #withdraw(message: Message): void {
    const span = paramOf(message, 'requestId');
    const key = span && idKey(textOf(message, span));
    if (key !== undefined) this.#asked.get(key)?.abort(message);
  }

  #updated(message: Message): void {
    const uri = stringParam(message, 'uri');
    if (uri === undefined) return this.#drop(message, 'it names no uri');
    this.#deps.changes.publish(
      { serverId: this.#deps.serverId, reason: 'updated', kinds: ['resources'], uri },
      () => {
        for (const agent of this.#deps.audience.subscribers(uri)) agent.notify(message);
      },
    );
  }

  #log(connection: Connection, message: Message, origin: Pending | undefined): void {
    const to = this.#channel(connection, message, origin);
    const agent = to && agentOf(to);
    if (agent && !this.#deps.audience.wants(agent, stringParam(message, 'level'))) return;
    this.#deliver(message, to);
  }

  #deliver(message: Message, to: Channel | undefined): void {
    if (to) to.notify(message);
    else this.#drop(message, 'nothing tells which of several agents it is for');
  }

  /** The way to the agent that a message belongs to. */
  #channel(
    connection: Connection,
    message: Message,
    origin: Pending | undefined,
  ): Exchange | Agent | undefined {
    if (origin) return origin.exchange;
    const owner = this.#ownerOf(message);
    if (owner !== undefined) return this.#reachable(connection, this.#deps.audience.get(owner));
    const [only, another] = connection.exchanges();
    if (connection.kind !== 'http' && only && !another) return only.exchange;
    return this.#reachable(connection, this.#deps.audience.only());
  }

  /** The agent's general stream, or the stream of its newest request where it holds no general one. */
  #reachable(connection: Connection, agent: Agent | undefined): Exchange | Agent | undefined {
    if (!agent || agent.listening) return agent;
    const own = [...connection.exchanges()].filter((pending) => pending.exchange.agent.id === agent.id);
    return own.at(-1)?.exchange ?? agent;
  }

  #ownerOf(message: Message): string | undefined {
    const related = stringParam(message, '_meta', RELATED_TASK, 'taskId');
    if (related !== undefined) return this.#owners.get(`task:${related}`);
    if (message.method.startsWith('notifications/tasks/'))
      return this.#owners.get(`task:${stringParam(message, 'taskId')}`);
    if (message.method.startsWith('tasks/'))
      return this.#owners.get(`asked task:${stringParam(message, 'taskId')}`);
    if (message.method !== 'notifications/elicitation/complete') return undefined;
    const elicitation = stringParam(message, 'elicitationId');
    return elicitation === undefined ? undefined : this.#owners.get(`elicitation:${elicitation}`);
  }

  #ask(connection: Connection, message: Message, origin: Pending | undefined): void {
    if (message.method === 'ping') return connection.post(result(message.id, {}));
    const to = this.#channel(connection, message, origin);
    if (!to) return connection.post(error(message.id, INTERNAL_ERROR, NOBODY));
    const agent = agentOf(to);
    const needed = CAPABILITY[message.method];
    if (needed && !declares(agent, needed))
      return connection.post(error(message.id, METHOD_NOT_FOUND, `The agent does not offer ${needed}`));
    const elicitation = mentions(message, 'elicitationId')
      ? stringParam(message, 'elicitationId')
      : undefined;
    if (elicitation !== undefined) this.#owners.set(`elicitation:${elicitation}`, agent.id);
    void this.#relay(connection, message, to, this.#pendingOf(connection, to, origin));
  }

  #pendingOf(connection: Connection, to: Exchange | Agent, origin: Pending | undefined): Pending | undefined {
    if (origin) return origin;
    for (const pending of connection.exchanges())
      if (pending.exchange === to || pending.exchange.agent === to) return pending;
    return undefined;
  }

  async #relay(
    connection: Connection,
    message: Message,
    to: Exchange | Agent,
    within: Pending | undefined,
  ): Promise<void> {
    const key = idKey(message.id);
    const asked = new AbortController();
    const withdraw = () => asked.abort();
    const done = within?.asking();
    this.#asked.set(key, asked);
    within?.failed.signal.addEventListener('abort', withdraw, { once: true });
    try {
      const onNotification = (progress: Message) => connection.post(progress);
      const answer = await to.ask(message, { signal: asked.signal, onNotification });
      if (mentions(message, 'task')) this.#noteAskedTask(answer, to);
      connection.post({ ...answer, id: message.id, bytes: withId(answer, message.id) });
    } catch (failure) {
      if (!asked.signal.aborted) connection.post(error(message.id, INTERNAL_ERROR, messageOf(failure)));
    } finally {
      done?.();
      within?.failed.signal.removeEventListener('abort', withdraw);
      if (this.#asked.get(key) === asked) this.#asked.delete(key);
    }
  }

  /** A task that an agent made of the server's request: the server will ask that same agent for it. */
  #noteAskedTask(answer: Message, to: Exchange | Agent): void {
    const taskId = answer.kind === 'result' ? stringInBody(answer, 'task', 'taskId') : undefined;
    if (taskId === undefined) return;
    const key = `asked task:${taskId}`;
    const agentId = agentOf(to).id;
    const before = this.#owners.get(key);
    // Agents choose these ids: of two that chose the same one, neither is asked about the other's task.
    this.#owners.set(key, before === undefined || before === agentId ? agentId : '');
  }

  #drop(message: Message, why: string): void {
    this.#deps.emit({ type: 'message_dropped', serverId: this.#deps.serverId, method: message.method, why });
  }
}

const NOBODY =
  'Several agents share this connection and nothing tells which of them is asked; ' +
  'a server that asks outside of a call needs "isolate": "session" in the gateway';

function agentOf(to: Exchange | Agent): Agent {
  return 'agent' in to ? to.agent : to;
}

function declares(agent: Agent, capability: string): boolean {
  const text = Buffer.from(agent.profile.capabilities);
  return member(text, 0, capability) !== undefined;
}

/** Ids of the elicitations that a URL-elicitation-required error asks for. */
function elicitationIds(answer: Message): string[] {
  if (!answer.body) return [];
  const parsed = JSON.parse(answer.bytes.toString('utf8', answer.body.start, answer.body.end)) as {
    data?: { elicitations?: { elicitationId?: unknown }[] };
  };
  const list = parsed.data?.elicitations;
  if (!Array.isArray(list)) return [];
  return list.map((one) => one?.elicitationId).filter((id): id is string => typeof id === 'string');
}
