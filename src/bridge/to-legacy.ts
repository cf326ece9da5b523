import { GatewayError } from '../base/errors.js';
import type { Exchange, Handler } from '../pipeline/exchange.js';
import { URL_ELICITATION_REQUIRED } from '../protocol/codes.js';
import { request } from '../protocol/compose.js';
import { severity } from '../protocol/log-levels.js';
import { mayAskForInput } from '../protocol/methods.js';
import { errorCodeOf } from '../wire/error-code.js';
import type { Message } from '../wire/message.js';
import { BridgedCall } from './bridged-call.js';
import type { BridgeDeps } from './deps.js';
import { discovered } from './discover.js';
import { readingAnswers, readingParams } from './faults.js';
import { type Inputs, inputRequired, inputsOf, urlQuestions } from './input-required.js';
import { logLevelOf, onStreamOf, progressTokenOf } from './leg-notices.js';
import { legacyRequest } from './legacy-request.js';
import { listenToLegacy } from './listen-to-legacy.js';
import { bodyOf, isObject } from './members.js';
import { modernAnswer } from './modern-answer.js';
import { ParkedCalls } from './parked-calls.js';
import { ParkingRoom, type Place } from './parking-room.js';
import { ownerKey, type PseudoAgent, PseudoAgents } from './pseudo-agents.js';

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

/** A request waits no longer than this for its server to take a log level. */
const LEVEL_MS = 5_000;

/** A request of a modern agent, in the name in which it goes to its server. */
interface Bridged {
  readonly upper: Exchange;
  readonly agent: PseudoAgent;
  readonly next: Handler;
}

/** Modern agents on legacy servers. */
export class ToLegacy {
  readonly #deps: BridgeDeps;
  readonly #agents: PseudoAgents;
  readonly #parked: ParkedCalls;
  readonly #room: ParkingRoom;

  constructor(deps: BridgeDeps) {
    this.#deps = deps;
    this.#agents = new PseudoAgents({ ...deps, leave: (agent) => deps.servers.leave(agent) });
    this.#parked = new ParkedCalls(deps);
    this.#room = new ParkingRoom(deps.maxParkedCalls);
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
    this.#agents.close();
  }

  async #handle(upper: Exchange, next: Handler): Promise<Message> {
    const { serverId, message } = upper;
    if (message.method === 'subscriptions/listen')
      return await listenToLegacy(upper, next, this.#deps.servers);
    const bridged = { upper, agent: this.#agents.of(upper), next };
    if (message.method === 'server/discover') return discovered(await this.#greeting(bridged), message.id);
    const level = readingParams(serverId, () => logLevelOf(message));
    return await this.#atLevel(level, bridged, () => this.#answer(bridged));
  }

  async #answer(bridged: Bridged): Promise<Message> {
    const { method } = bridged.upper.message;
    if (mayAskForInput(method)) return await this.#call(bridged);
    const answer = modernAnswer(await this.#plain(bridged));
    if (method === 'tools/list') this.#deps.servers.listed(bridged.upper, answer);
    return answer;
  }

  /** A request that may take no input. */
  #plain({ upper, agent, next }: Bridged): Promise<Message> {
    const { serverId, caller, fresh, signal } = upper;
    const [message, token] = readingParams(serverId, () => [
      legacyRequest(upper.message),
      progressTokenOf(upper.message),
    ]);
    const exchange: Exchange = {
      ...{ era: 'legacy', serverId, message, agent, caller, fresh, signal },
      notify: (notification) => {
        const told = onStreamOf(upper.message, notification, token);
        if (told) upper.notify(told);
      },
      // On a channel of several requests the newest is given what another one asks.
      ask: (question, options) => agent.ask(question, options),
    };
    return agent.during(() => next(exchange));
  }

  async #call(bridged: Bridged): Promise<Message> {
    const { upper } = bridged;
    const { state, responses } = readingParams(upper.serverId, () =>
      inputsOf(upper.message, upper.serverId),
    ) satisfies Inputs;
    const resumed = state === undefined ? undefined : this.#parked.resume(upper, state);
    for (const [key, response] of responses) resumed?.answer(key, response);
    const call = resumed ?? this.#begin(bridged);
    const end = await call.leg(upper);
    if (end.kind === 'answer') return this.#answered(end.message, upper);
    return inputRequired(upper.message.id, end.questions, this.#parked.park(call, upper));
  }

  #begin({ upper, agent, next }: Bridged): BridgedCall {
    const { clock } = this.#deps;
    const message = readingParams(upper.serverId, () => legacyRequest(upper.message));
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

  /** A legacy server has one log level for a session, which belongs to all requests of an agent. */
  async #atLevel(
    level: string | undefined,
    bridged: Bridged,
    work: () => Promise<Message>,
  ): Promise<Message> {
    const held = bridged.agent.level;
    const tell = (wanted: string) => this.#setLevel(wanted, bridged);
    if (severity(level) < 0) {
      held.relax(tell);
      return await work();
    }
    const release = await held.hold(level as string, tell);
    try {
      return await work();
    } finally {
      release();
    }
  }

  /** Sent in the session's own name, not in that of a request. Never rejects: its logs are not worth a request. */
  async #setLevel(level: string, bridged: Bridged): Promise<void> {
    const late = new AbortController();
    const timer = this.#deps.clock.after(LEVEL_MS, () => late.abort());
    try {
      const facts = await this.#greeting(bridged, late.signal);
      if (!isObject(facts, bodyOf(facts, 'capabilities', 'logging'))) return;
      await this.#own(bridged, 'logging/setLevel', { level }, late.signal);
    } catch {
      // Then the request itself fails for the same reason, or its server says what it likes.
    } finally {
      timer.cancel();
    }
  }

  /** The server's InitializeResult, from what is known of it. */
  #greeting(bridged: Bridged, signal?: AbortSignal): Promise<Message> {
    return this.#own(bridged, 'initialize', {}, signal);
  }

  /** A request of the bridge's own. */
  #own({ upper, agent, next }: Bridged, method: string, params: object, signal = upper.signal) {
    const { serverId, caller, fresh } = upper;
    const message = request('1', method, params);
    const exchange: Exchange = {
      ...{ era: 'legacy', serverId, message, agent, caller, fresh, signal },
      notify: () => {},
      ask: (question, options) => agent.ask(question, options),
    };
    return agent.during(() => next(exchange));
  }
}

function unknown({ serverId, message }: Exchange): GatewayError {
  return new GatewayError('method_unknown', `2026-07-28 has no method ${JSON.stringify(message.method)}`, {
    serverId,
  });
}
