import { setMaxListeners } from 'node:events';
import type { Clock } from '../base/clock.js';
import { messageOf } from '../base/errors.js';
import type { Agent, Exchange } from '../pipeline/exchange.js';
import { INTERNAL_ERROR, METHOD_NOT_FOUND } from '../protocol/codes.js';
import { error } from '../protocol/compose.js';
import { JsonError, member } from '../wire/json.js';
import { idKey, type Message, withId } from '../wire/message.js';
import type { Connection } from './connection.js';
import type { Owners } from './owners.js';
import type { Pending } from './pending.js';
import { paramOf, textOf } from './rewrite.js';

/** Questions of one server that may be open at a time: an agent that answers none must not fill the memory. */
const MAX_OPEN = 1_000;

/** A server may ask as soon as it is initialized, before its agent has had time to open a stream. */
const PATIENCE_MS = 5_000;

/** The capability that an agent must have declared before a server may ask it. */
const CAPABILITY: Readonly<Record<string, string>> = {
  'sampling/createMessage': 'sampling',
  'elicitation/create': 'elicitation',
  'roots/list': 'roots',
};

/** Why a question was withdrawn while its server still waits for the answer. */
const REQUEST_OVER = Symbol('the request that it was asked within is over');

/** What a server asked its agents and they have not answered yet. */
export class Questions {
  readonly #owners: Owners;
  readonly #clock: Clock;
  /** By the server's id. */
  readonly #open = new Map<string, AbortController>();
  /** Questions that wait for their agent's stream. */
  readonly #waiting = new Set<{ readonly agent: Agent; readonly proceed: () => void }>();

  constructor(owners: Owners, clock: Clock) {
    this.#owners = owners;
    this.#clock = clock;
  }

  /** The agent listens from now on. */
  heard(agent: Agent): void {
    for (const waiting of [...this.#waiting]) if (waiting.agent === agent) waiting.proceed();
  }

  /** Puts a question to an agent, or refuses it; `within` are the requests that may be waiting for its answer. */
  ask(connection: Connection, question: Message, to: Exchange | Agent, within: readonly Pending[]): void {
    const refuse = (code: number, why: string) => connection.post(error(question.id, code, why));
    const agent = agentOf(to);
    const needed = CAPABILITY[question.method];
    if (needed && !declares(agent, needed))
      return refuse(METHOD_NOT_FOUND, `The agent does not offer ${needed}`);
    if (this.#open.size >= MAX_OPEN)
      return refuse(INTERNAL_ERROR, `${MAX_OPEN} questions of this server are open already`);
    this.#owners.noteQuestion(question, agent.id);
    void this.#relay(connection, question, to, within);
  }

  /** Takes a server's `notifications/cancelled`. False where no question of that id is open. */
  withdraw(message: Message): boolean {
    const span = paramOf(message, 'requestId');
    const asked = span && this.#open.get(idKey(textOf(message, span)));
    asked?.abort(message);
    return asked !== undefined;
  }

  /** The connection is gone: nobody waits for any answer. */
  withdrawAll(): void {
    for (const asked of this.#open.values()) asked.abort();
    this.#open.clear();
  }

  async #relay(
    connection: Connection,
    question: Message,
    to: Exchange | Agent,
    within: readonly Pending[],
  ): Promise<void> {
    const key = idKey(question.id);
    const asked = new AbortController();
    const done = within.map((pending) => pending.asking());
    const only = within.length === 1 ? within[0]?.failed.signal : undefined;
    const requestOver = () => asked.abort(REQUEST_OVER);
    this.#open.set(key, asked);
    if (only) {
      // As many as there are questions, and each goes with its own.
      setMaxListeners(0, only);
      only.addEventListener('abort', requestOver, { once: true });
    }
    try {
      const onNotification = (progress: Message) => connection.post(progress);
      if (!('agent' in to) && !to.listening) await this.#stream(to, asked.signal);
      const answer = await to.ask(question, { signal: asked.signal, onNotification });
      this.#noteAnswer(question, answer, agentOf(to));
      connection.post({ ...answer, id: question.id, bytes: withId(answer, question.id) });
    } catch (failure) {
      const { aborted, reason } = asked.signal;
      if (!aborted || reason === REQUEST_OVER)
        connection.post(error(question.id, INTERNAL_ERROR, messageOf(failure)));
    } finally {
      for (const end of done) end();
      only?.removeEventListener('abort', requestOver);
      if (this.#open.get(key) === asked) this.#open.delete(key);
    }
  }

  /** Settles when the agent listens, when that takes too long, or when the question is withdrawn. */
  #stream(agent: Agent, withdrawn: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const proceed = () => {
        this.#waiting.delete(waiting);
        timer.cancel();
        withdrawn.removeEventListener('abort', proceed);
        resolve();
      };
      const waiting = { agent, proceed };
      const timer = this.#clock.after(PATIENCE_MS, proceed);
      this.#waiting.add(waiting);
      withdrawn.addEventListener('abort', proceed, { once: true });
    });
  }

  /** An answer that names a member twice is still the agent's answer. */
  #noteAnswer(question: Message, answer: Message, agent: Agent): void {
    try {
      this.#owners.noteAskedTask(question, answer, agent.id);
    } catch (failure) {
      if (!(failure instanceof JsonError)) throw failure;
    }
  }
}

export function agentOf(to: Exchange | Agent): Agent {
  return 'agent' in to ? to.agent : to;
}

function declares(agent: Agent, capability: string): boolean {
  return member(Buffer.from(agent.profile.capabilities), 0, capability) !== undefined;
}
