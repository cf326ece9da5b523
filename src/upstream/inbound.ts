import { BoundedMap } from '../base/bounded-map.js';
import type { Clock } from '../base/clock.js';
import type { ChangeBus } from '../pipeline/changes.js';
import type { EventSink } from '../pipeline/events.js';
import type { Agent, Exchange } from '../pipeline/exchange.js';
import { INTERNAL_ERROR, INVALID_REQUEST } from '../protocol/codes.js';
import { error, notification, result } from '../protocol/compose.js';
import { type ListKind, listChangedKind } from '../protocol/methods.js';
import { JsonError } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import { channelOf, reachable, requestsOf } from './attribution.js';
import type { Audience } from './audience.js';
import type { Connection } from './connection.js';
import { Owners } from './owners.js';
import type { Pending } from './pending.js';
import { agentOf, Questions } from './questions.js';
import { paramOf, stringParam, textOf, withText } from './rewrite.js';

const MAX_LATE = 10_000;

/** Progress of a task goes on after its first answer, under the token of the request that began it. */
interface LateProgress {
  readonly agentId: string;
  readonly token: string;
}

export interface InboundDeps {
  readonly serverId: string;
  readonly audience: Audience;
  readonly changes: ChangeBus;
  readonly clock: Clock;
  readonly emit: EventSink;
  /** The server asks its agents for what each of them answers in its own way. */
  readonly asksAgents: () => void;
}

/** What a server says on its own account, brought to the agents it is meant for, or to nobody. */
export class Inbound {
  readonly #deps: InboundDeps;
  readonly #owners = new Owners();
  readonly #questions: Questions;
  /** By the gateway's own token. */
  readonly #lateProgress = new BoundedMap<string, LateProgress>(MAX_LATE);

  constructor(deps: InboundDeps) {
    this.#deps = deps;
    this.#questions = new Questions(this.#owners, deps.clock);
  }

  /** An agent listens from now on: what the server asked it meanwhile is asked. */
  heard(agent: Agent): void {
    this.#questions.heard(agent);
  }

  /** Takes a notification or a request. Never throws. */
  take(connection: Connection, message: Message, origin: Pending | undefined): void {
    try {
      if (message.kind === 'request') this.#ask(connection, message, origin);
      else this.#notification(connection, message, origin);
    } catch (failure) {
      if (!(failure instanceof JsonError)) throw failure;
      if (message.kind === 'request') connection.post(error(message.id, INVALID_REQUEST, failure.message));
      else this.#drop(message, 'its params are ambiguous');
    }
  }

  /** Remembers what an answer gave its agent: tasks and elicitations of which the server will speak later. */
  answered(pending: Pending, exchange: Exchange, answer: Message): void {
    // Behind the answer nothing reaches an agent that has no other stream.
    if (!exchange.agent.listening) this.#deps.audience.flushNotices(exchange.agent);
    try {
      const taskId = this.#owners.noteAnswer(exchange, answer);
      if (taskId === undefined || pending.progressToken === undefined) return;
      this.#lateProgress.set(pending.wireId, { agentId: exchange.agent.id, token: pending.progressToken });
    } catch (failure) {
      // Ambiguous to us, it is the agent's answer all the same.
      if (!(failure instanceof JsonError)) throw failure;
    }
  }

  /** The agent that began a task, if it is known. */
  ownerOfTask(taskId: string): string | undefined {
    return this.#owners.ofTask(taskId);
  }

  /** Tells every agent that a list may be another one. What was remembered of it must be forgotten by now. */
  announce(kind: ListKind, message = notification(`notifications/${kind}/list_changed`)): void {
    this.#broadcast(kind, message, undefined);
  }

  /** The connection is gone: what it asked is withdrawn from the agents, and its tokens mean nothing any more. */
  withdrawAll(): void {
    this.#questions.withdrawAll();
    this.#lateProgress.clear();
  }

  #notification(connection: Connection, message: Message, origin: Pending | undefined): void {
    const kind = listChangedKind(message.method);
    if (kind) {
      const tell = () => this.#broadcast(kind, message, origin);
      return this.#deps.changes.publish(
        { serverId: this.#deps.serverId, reason: 'list_changed', kinds: [kind] },
        tell,
      );
    }
    switch (message.method) {
      case 'notifications/progress':
        return this.#progress(connection, message, origin);
      case 'notifications/cancelled':
        if (!this.#questions.withdraw(message)) this.#drop(message, 'no question of that id is open');
        return;
      case 'notifications/resources/updated':
        return this.#updated(message, origin);
      case 'notifications/message':
        return this.#log(connection, message, origin);
      default:
        return this.#deliver(message, this.#channel(connection, message, origin));
    }
  }

  #broadcast(kind: ListKind, message: Message, origin: Pending | undefined): void {
    const { audience, clock } = this.#deps;
    for (const agent of audience.agents())
      audience.notices(agent, clock)?.tell(kind, () => wayTo(agent, origin).notify(message));
  }

  #progress(connection: Connection, message: Message, origin: Pending | undefined): void {
    const span = paramOf(message, 'progressToken');
    const wireToken = span ? textOf(message, span) : '';
    const within = origin?.exchange;
    // On a request's own stream nothing is told of another agent's.
    const fits = (agentId: string) => within === undefined || within.agent.id === agentId;
    const pending = connection.pending(wireToken);
    if (pending?.exchange && fits(pending.exchange.agent.id)) {
      pending.alive();
      if (span && pending.progressToken !== undefined)
        return pending.exchange.notify(withText(message, span, pending.progressToken));
    }
    const late = this.#lateProgress.get(wireToken);
    if (!span || !late || !fits(late.agentId))
      return this.#drop(message, 'no request gave this progress token');
    const to = within ?? reachable(connection, this.#deps.audience.get(late.agentId));
    this.#deliver(withText(message, span, late.token), to);
  }

  #updated(message: Message, origin: Pending | undefined): void {
    const { serverId, audience, changes } = this.#deps;
    const uri = stringParam(message, 'uri');
    if (uri === undefined) return this.#drop(message, 'it names no uri');
    changes.publish({ serverId, reason: 'updated', kinds: ['resources'], uri }, () => {
      for (const agent of audience.subscribers(uri)) wayTo(agent, origin).notify(message);
    });
  }

  #log(connection: Connection, message: Message, origin: Pending | undefined): void {
    const to = this.#channel(connection, message, origin);
    if (to && !this.#deps.audience.wants(agentOf(to), stringParam(message, 'level'))) return;
    this.#deliver(message, to);
  }

  #deliver(message: Message, to: Exchange | Agent | undefined): void {
    if (to) to.notify(message);
    else this.#drop(message, 'nothing tells which of several agents it is for');
  }

  #ask(connection: Connection, message: Message, origin: Pending | undefined): void {
    if (message.method === 'ping') return connection.post(result(message.id, {}));
    const to = this.#channel(connection, message, origin);
    // Roots are remembered by the server for the whole session, whoever's they are.
    if (!to || message.method === 'roots/list') this.#deps.asksAgents();
    if (!to) return connection.post(error(message.id, INTERNAL_ERROR, NOBODY));
    // Any of an agent's requests may wait for the answer, where the stream does not tell which.
    const within = origin?.exchange ? [origin] : requestsOf(connection, agentOf(to));
    this.#questions.ask(connection, message, to, within);
  }

  #channel(
    connection: Connection,
    message: Message,
    origin: Pending | undefined,
  ): Exchange | Agent | undefined {
    return origin?.exchange ?? channelOf(connection, this.#deps.audience, this.#owners.signOf(message));
  }

  #drop(message: Message, why: string): void {
    this.#deps.emit({ type: 'message_dropped', serverId: this.#deps.serverId, method: message.method, why });
  }
}

const NOBODY =
  'Several agents share this connection and nothing tells which of them is asked; ' +
  'a server that asks outside of a call needs "isolate": "session" in the gateway';

/** News for all came on one request's stream: its own agent hears it there, as long as it lasts. */
function wayTo(agent: Agent, origin: Pending | undefined): Exchange | Agent {
  return origin?.exchange?.agent.id === agent.id && !origin.settled ? origin.exchange : agent;
}
