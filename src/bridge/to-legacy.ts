import { GatewayError } from '../base/errors.js';
import type { Exchange, Handler } from '../pipeline/exchange.js';
import { URL_ELICITATION_REQUIRED } from '../protocol/codes.js';
import { mayAskForInput } from '../protocol/methods.js';
import { errorCodeOf } from '../wire/error-code.js';
import type { Message } from '../wire/message.js';
import { BridgedCall } from './bridged-call.js';
import { BridgedRequest } from './bridged-request.js';
import type { BridgeDeps } from './deps.js';
import { discovered } from './discover.js';
import { readingAnswers, readingParams } from './faults.js';
import { inputRequired, inputsOf, urlQuestions } from './input-required.js';
import { LegacyTasks, offersTasks } from './legacy-tasks.js';
import { listenToLegacy } from './listen-to-legacy.js';
import { paramOf, stringIn } from './members.js';
import { modernAnswer } from './modern-answer.js';
import { ParkedCalls } from './parked-calls.js';
import { ParkingRoom, type Place } from './parking-room.js';
import { ownerKey, PseudoAgents } from './pseudo-agents.js';
import { TaskTools } from './task-tools.js';

/** Methods that 2026-07-28 no longer has, whatever its server knows. */
const REMOVED: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'tasks/list',
  'tasks/result',
]);

/** Methods of the extension for tasks. */
const OF_TASKS: ReadonlySet<string> = new Set(['tasks/get', 'tasks/update', 'tasks/cancel']);

/** Modern agents on legacy servers. */
export class ToLegacy {
  readonly #deps: BridgeDeps;
  readonly #agents: PseudoAgents;
  readonly #parked: ParkedCalls;
  readonly #room: ParkingRoom;
  readonly #tasks: LegacyTasks;
  readonly #taskTools = new TaskTools();

  constructor(deps: BridgeDeps) {
    this.#deps = deps;
    this.#agents = new PseudoAgents({ ...deps, leave: (agent) => deps.servers.leave(agent) });
    this.#parked = new ParkedCalls(deps);
    this.#room = new ParkingRoom(deps.maxParkedCalls);
    this.#tasks = new LegacyTasks({ ...deps, placeFor: (upper) => this.#placeFor(upper) });
  }

  /** Answers as 2026-07-28 has it. Rejects with GatewayError. */
  async handle(upper: Exchange, next: Handler): Promise<Message> {
    const { serverId, message } = upper;
    if (REMOVED.has(message.method)) throw unknown(upper);
    return await readingAnswers(serverId, this.#handle(upper, next));
  }

  close(): void {
    this.#room.close();
    this.#parked.close();
    this.#tasks.close();
    this.#agents.close();
  }

  async #handle(upper: Exchange, next: Handler): Promise<Message> {
    const { method, id } = upper.message;
    const bridged = new BridgedRequest(upper, this.#agents.of(upper), next, this.#deps.clock);
    if (method === 'subscriptions/listen') return await listenToLegacy(bridged, this.#deps.servers);
    if (method === 'server/discover') return discovered(await bridged.greeting(), id);
    if (OF_TASKS.has(method)) return await this.#task(bridged);
    return await bridged.atLevel(() => this.#answer(bridged));
  }

  async #answer(bridged: BridgedRequest): Promise<Message> {
    const { upper } = bridged;
    const { method } = upper.message;
    if (mayAskForInput(method)) return await this.#call(bridged);
    const answer = modernAnswer(await bridged.plain());
    if (method !== 'tools/list') return answer;
    this.#taskTools.learn(this.#placeOfLists(upper), answer);
    bridged.agent.offersTasks = undefined;
    this.#deps.servers.listed(upper, answer);
    return answer;
  }

  async #call(bridged: BridgedRequest): Promise<Message> {
    const { upper } = bridged;
    const { serverId, message } = upper;
    const { state, responses } = readingParams(serverId, () => inputsOf(message, serverId));
    const resumed = state === undefined ? undefined : this.#parked.resume(upper, state);
    for (const [key, response] of responses) resumed?.answer(key, response);
    if (!resumed && (await this.#mustBeTask(bridged))) return await this.#tasks.create(bridged);
    const call = resumed ?? this.#begin(bridged);
    const end = await call.leg(upper);
    if (end.kind === 'answer') return this.#answered(end.message, upper);
    return inputRequired(message.id, end.questions, this.#parked.park(call, upper));
  }

  #begin({ upper, agent, next, message }: BridgedRequest): BridgedCall {
    const { clock } = this.#deps;
    const call = new BridgedCall({ upper, message, agent, place: this.#placeFor(upper), clock });
    call.begin((exchange) => agent.during(() => next(exchange), call));
    return call;
  }

  #placeFor({ serverId, caller, message }: Exchange): Place {
    const place = this.#room.placeFor(ownerKey(caller));
    const take = () => {
      const taken = place.take();
      const why = 'its question was refused: as many calls wait for their agents as may';
      if (!taken) this.#deps.emit({ type: 'message_dropped', serverId, method: message.method, why });
      return taken;
    };
    return { ...place, take };
  }

  /** An error that sends a person elsewhere first is a question, too; the request is run again behind it. */
  #answered(answer: Message, upper: Exchange): Message {
    const questions =
      errorCodeOf(answer) === URL_ELICITATION_REQUIRED ? urlQuestions(answer, upper) : undefined;
    if (!questions) return modernAnswer(answer);
    return inputRequired(upper.message.id, questions, this.#parked.again(upper));
  }

  async #task(bridged: BridgedRequest): Promise<Message> {
    if (!(await this.#offersTasks(bridged))) throw unknown(bridged.upper);
    return await this.#tasks.handle(bridged);
  }

  /** Whether a call has to become a task. Of servers that know no tasks nothing is asked. */
  async #mustBeTask(bridged: BridgedRequest): Promise<boolean> {
    const { serverId, message } = bridged.upper;
    if (message.method !== 'tools/call' || !(await this.#offersTasks(bridged))) return false;
    const tool = readingParams(serverId, () => stringIn(message, paramOf(message, 'name')));
    const place = this.#placeOfLists(bridged.upper);
    return tool !== undefined && (await this.#taskTools.demand(place, tool, bridged));
  }

  async #offersTasks(bridged: BridgedRequest): Promise<boolean> {
    const { agent } = bridged;
    if (agent.offersTasks !== undefined) return agent.offersTasks;
    const greeting = await bridged.greeting();
    if (greeting.kind === 'result') agent.offersTasks = offersTasks(greeting);
    return agent.offersTasks ?? false;
  }

  /** Lists of tools are the same where this is. */
  #placeOfLists({ serverId, agent, caller }: Exchange): string {
    return `${this.#deps.partitionOf(serverId, agent, caller)}\n${agent.profile.fingerprint}`;
  }
}

function unknown({ serverId, message }: Exchange): GatewayError {
  return new GatewayError('method_unknown', `2026-07-28 has no method ${JSON.stringify(message.method)}`, {
    serverId,
  });
}
