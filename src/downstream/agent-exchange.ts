import type { AskOptions, Caller, Exchange } from '../pipeline/exchange.js';
import { idKey, type Message } from '../wire/message.js';
import type { Failure } from './errors.js';
import type { Reply } from './reply.js';
import type { Session } from './session.js';

/** One request of an agent on its way. Most are answered at once, so that nothing is made before it is asked for. */
export class AgentExchange implements Exchange {
  readonly era = 'legacy';
  readonly agent: Session;
  readonly message: Message;
  readonly caller: Caller;
  readonly fresh: boolean;
  readonly reply: Reply;
  #aborter: AbortController | undefined;
  #over = false;

  constructor(agent: Session, message: Message, caller: Caller, fresh: boolean, reply: Reply) {
    this.agent = agent;
    this.message = message;
    this.caller = caller;
    this.fresh = fresh;
    this.reply = reply;
  }

  get serverId(): string {
    return this.agent.serverId;
  }

  get signal(): AbortSignal {
    this.#aborter ??= new AbortController();
    return this.#aborter.signal;
  }

  /** Answered or given up: whatever still comes is dropped. */
  get over(): boolean {
    return this.#over;
  }

  notify(message: Message): void {
    if (this.#over || !this.reply.send(message.bytes))
      this.agent.dropped(message, 'its request has no stream');
  }

  ask(message: Message, options: AskOptions): Promise<Message> {
    return this.agent.askThrough(this.#over ? NOWHERE : this.reply, message, options);
  }

  /** The one response; its bytes are the server's but for the id. */
  answer(bytes: Buffer): void {
    if (this.#over) return;
    this.#over = true;
    this.reply.answer(bytes, this.message.id);
  }

  fail(failure: Failure): void {
    if (this.#over) return;
    this.#over = true;
    this.reply.fail(failure, this.message.id);
  }

  /** Gives the request up: the servers' side learns why, and the agent gets `failure` or nothing. */
  abort(reason: unknown, failure?: Failure): void {
    if (this.#over) return;
    this.#over = true;
    this.#aborter ??= new AbortController();
    // What is withdrawn because of it is told before the reply ends.
    this.#aborter.abort(reason);
    if (failure) this.reply.fail(failure, this.message.id);
    else this.reply.silence();
  }
}

const NOWHERE = { send: () => false };

/** The requests of one agent that are under way, by id. An agent may use one id twice at a time. */
export class InFlight<E extends Pick<Exchange, 'message'> = AgentExchange> {
  readonly #byId = new Map<string, E[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(exchange: E): void {
    const key = idKey(exchange.message.id);
    const same = this.#byId.get(key);
    if (same) same.push(exchange);
    else this.#byId.set(key, [exchange]);
    this.#size++;
  }

  delete(exchange: E): void {
    const key = idKey(exchange.message.id);
    const same = this.#byId.get(key);
    const at = same?.indexOf(exchange) ?? -1;
    if (!same || at < 0) return;
    this.#size--;
    if (same.length === 1) this.#byId.delete(key);
    else same.splice(at, 1);
  }

  /** How many requests have this id. */
  count(id: string): number {
    return this.#byId.get(idKey(id))?.length ?? 0;
  }

  /** The one request with this id; undefined where there is none, or nobody can tell which. */
  only(id: string): E | undefined {
    const same = this.#byId.get(idKey(id));
    return same?.length === 1 ? same[0] : undefined;
  }

  all(): E[] {
    return [...this.#byId.values()].flat();
  }
}
