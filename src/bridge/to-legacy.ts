import { GatewayError } from '../base/errors.js';
import type { Exchange, Handler } from '../pipeline/exchange.js';
import { URL_ELICITATION_REQUIRED } from '../protocol/codes.js';
import { severity } from '../protocol/log-levels.js';
import { LOG_LEVEL_META } from '../protocol/meta.js';
import { mayAskForInput } from '../protocol/methods.js';
import { errorCodeOf } from '../wire/error-code.js';
import { JsonError } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';
import { BridgedCall } from './bridged-call.js';
import type { BridgeDeps } from './deps.js';
import { discovered } from './discover.js';
import { asInputRequests, inputRequired, inputResponses, urlRequests } from './input-required.js';
import { legacyRequest } from './legacy-request.js';
import { listenToLegacy } from './listen-to-legacy.js';
import { bodyOf, isObject, paramOf, stringIn } from './members.js';
import { modernAnswer } from './modern-answer.js';
import { ParkedCalls } from './parked-calls.js';
import { type PseudoAgent, PseudoAgents } from './pseudo-agents.js';

/** Methods that 2026-07-28 no longer has, whatever its server knows. */
const REMOVED: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'tasks/get',
  'tasks/list',
  'tasks/result',
  'tasks/cancel',
  'tasks/update',
]);

/** Modern agents on legacy servers. */
export class ToLegacy {
  readonly #deps: BridgeDeps;
  readonly #agents: PseudoAgents;
  readonly #parked: ParkedCalls;

  constructor(deps: BridgeDeps) {
    this.#deps = deps;
    this.#agents = new PseudoAgents({ ...deps, leave: (agent) => deps.servers.leave(agent) });
    this.#parked = new ParkedCalls(deps);
  }

  /** Answers as 2026-07-28 has it. Rejects with GatewayError. */
  async handle(upper: Exchange, next: Handler): Promise<Message> {
    try {
      return await this.#handle(upper, next);
    } catch (failure) {
      if (!(failure instanceof JsonError)) throw failure;
      const { serverId } = upper;
      throw new GatewayError('invalid_params', `The params are ambiguous: ${failure.message}`, { serverId });
    }
  }

  close(): void {
    this.#parked.close();
    this.#agents.close();
  }

  async #handle(upper: Exchange, next: Handler): Promise<Message> {
    const { method } = upper.message;
    if (REMOVED.has(method)) throw unknown(upper);
    const agent = this.#agents.of(upper);
    if (method === 'subscriptions/listen') return await listenToLegacy(upper, next, this.#deps.servers);
    if (method === 'server/discover') return await this.#discover(upper, agent, next);
    await this.#holdLevel(upper, agent, next);
    if (mayAskForInput(method)) return await this.#call(upper, agent, next);
    const answer = modernAnswer(await this.#plain(upper, agent, legacyRequest(upper.message), next));
    if (method === 'tools/list') this.#deps.servers.listed(upper, answer);
    return answer;
  }

  async #discover(upper: Exchange, agent: PseudoAgent, next: Handler): Promise<Message> {
    const { id } = upper.message;
    return discovered(await this.#plain(upper, agent, greeting(id), next), id);
  }

  /** A request that can wait for nothing. */
  async #plain(upper: Exchange, agent: PseudoAgent, message: Message, next: Handler): Promise<Message> {
    const { serverId, caller, fresh, signal } = upper;
    agent.running++;
    try {
      return await next({
        ...{ era: 'legacy', serverId, message, agent, caller, fresh, signal },
        notify: (notification) => upper.notify(notification),
        ask: () => upper.ask(message, { signal, onNotification: () => {} }),
      });
    } finally {
      agent.running--;
    }
  }

  async #call(upper: Exchange, agent: PseudoAgent, next: Handler): Promise<Message> {
    const state = stringIn(upper.message, paramOf(upper.message, 'requestState'));
    const resumed = state === undefined ? undefined : this.#parked.resume(upper, state);
    if (!resumed) return await this.#leg(this.#begin(upper, agent, next), upper, 1);
    for (const [key, response] of inputResponses(upper.message)) resumed.call.answer(key, response);
    return await this.#leg(resumed.call, upper, resumed.round + 1);
  }

  #begin(upper: Exchange, agent: PseudoAgent, next: Handler): BridgedCall {
    const { clock } = this.#deps;
    const mayPark = () => this.#parked.hasRoom(agent.id);
    const call = new BridgedCall({ upper, message: legacyRequest(upper.message), agent, mayPark, clock });
    agent.calls.add(call);
    call.begin(async (exchange) => {
      try {
        return await next(exchange);
      } finally {
        agent.calls.delete(call);
      }
    });
    return call;
  }

  async #leg(call: BridgedCall, upper: Exchange, round: number): Promise<Message> {
    const { id } = upper.message;
    const end = await call.leg(upper);
    if (end.kind === 'answer') return this.#answered(end.message, upper);
    return inputRequired(id, asInputRequests(end.questions), this.#parked.park(call, upper, round));
  }

  /** An error that sends a person elsewhere first is a question, too; the request is run again behind it. */
  #answered(answer: Message, upper: Exchange): Message {
    if (errorCodeOf(answer) !== URL_ELICITATION_REQUIRED) return modernAnswer(answer);
    const requests = urlRequests(answer, upper);
    if (!requests) return modernAnswer(answer);
    return inputRequired(upper.message.id, requests, this.#parked.again(upper));
  }

  /** A legacy server has one level for a session: it is told the most verbose that any request wanted. */
  async #holdLevel(upper: Exchange, agent: PseudoAgent, next: Handler): Promise<void> {
    const level = stringIn(upper.message, paramOf(upper.message, '_meta', LOG_LEVEL_META));
    if (level === undefined || (agent.level && severity(level) >= severity(agent.level))) return;
    agent.level = level;
    const facts = await this.#plain(upper, agent, greeting(upper.message.id), next);
    if (!isObject(facts, bodyOf(facts, 'capabilities', 'logging'))) return;
    const text = `{"jsonrpc":"2.0","id":${upper.message.id},"method":"logging/setLevel","params":{"level":${JSON.stringify(level)}}}`;
    await this.#plain(upper, agent, readMessage(Buffer.from(text)), next);
  }
}

/** What is answered from the server's own greeting. */
function greeting(id: string): Message {
  return readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"initialize","params":{}}`));
}

function unknown({ serverId, message }: Exchange): GatewayError {
  return new GatewayError('method_unknown', `2026-07-28 has no method ${JSON.stringify(message.method)}`, {
    serverId,
  });
}
