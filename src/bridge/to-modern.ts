import { BoundedMap } from '../base/bounded-map.js';
import { GatewayError } from '../base/errors.js';
import type { Agent, Caller, Exchange, Handler } from '../pipeline/exchange.js';
import { LOG_LEVELS } from '../protocol/log-levels.js';
import { JsonError } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';
import type { BridgeDeps } from './deps.js';
import { EnvelopedAgent, enveloped, envelopeOf, metaText, modernExchange } from './envelope.js';
import { initialized } from './initialize-result.js';
import { legacyAnswer } from './legacy-answer.js';
import { LegacyListener } from './listen-to-modern.js';
import { bodyOf, isObject, paramOf, stringIn, textOf } from './members.js';
import { inRounds } from './rounds.js';

/** What the bridge remembers of one legacy agent on one modern server. */
interface Known {
  level: string | undefined;
  listener: LegacyListener | undefined;
}

interface Discovered {
  readonly answer: Message;
  readonly until: number;
}

const MAX_DISCOVERED = 1_000;
/** How long a server's discovery is given to agents that arrive. */
const DISCOVERED_MS = 60_000;

/** Legacy agents on modern servers. */
export class ToModern {
  readonly #deps: BridgeDeps;
  /** By agent id, then by server. */
  readonly #known = new Map<string, Map<string, Known>>();
  readonly #discovered = new BoundedMap<string, Discovered>(MAX_DISCOVERED);

  constructor(deps: BridgeDeps) {
    this.#deps = deps;
  }

  /** Answers as the agent's own revision has it. Rejects with GatewayError. */
  async handle(upper: Exchange, next: Handler): Promise<Message> {
    try {
      return await this.#handle(upper, next);
    } catch (failure) {
      if (!(failure instanceof JsonError)) throw failure;
      const { serverId } = upper;
      throw new GatewayError('invalid_params', `The params are ambiguous: ${failure.message}`, { serverId });
    }
  }

  /** The agent's general stream is open. */
  listen(serverId: string, agent: Agent, caller: Caller): void {
    this.#listener(serverId, agent, caller).listen(caller);
  }

  leave(agent: Agent): void {
    for (const { listener } of this.#known.get(agent.id)?.values() ?? []) listener?.end();
    this.#known.delete(agent.id);
  }

  close(): void {
    for (const servers of this.#known.values()) for (const { listener } of servers.values()) listener?.end();
    this.#known.clear();
  }

  async #handle(upper: Exchange, next: Handler): Promise<Message> {
    const { id, method } = upper.message;
    switch (method) {
      case 'initialize':
        return initialized(await this.#discover(upper, next), id, upper.serverId);
      case 'ping':
        return done(id);
      case 'logging/setLevel':
        return await this.#setLevel(upper, next);
      case 'resources/subscribe':
      case 'resources/unsubscribe':
        return await this.#subscribe(upper);
      default:
        return await this.#forward(upper, next);
    }
  }

  async #forward(upper: Exchange, next: Handler): Promise<Message> {
    const { serverId, agent, message } = upper;
    if (paramOf(message, 'task')) {
      const what = `Server "${serverId}" decides itself what becomes a task: send the call without \`task\``;
      throw new GatewayError('invalid_params', what, { serverId });
    }
    const envelope = envelopeOf(agent.profile, this.#known.get(agent.id)?.get(serverId)?.level);
    const inner = new EnvelopedAgent(agent);
    const send = (request: Message) => next(modernExchange(upper, inner, request));
    const request = enveloped(message, envelope, serverId);
    return legacyAnswer(await inRounds(upper, request, { clock: this.#deps.clock, send }), serverId);
  }

  async #discover(upper: Exchange, next: Handler): Promise<Message> {
    const { serverId, agent, caller, message } = upper;
    const key = JSON.stringify([serverId, caller.principal, caller.tokenHash, agent.profile.fingerprint]);
    const now = this.#deps.clock.now();
    const kept = this.#discovered.get(key);
    if (kept && now < kept.until) return kept.answer;
    const meta = metaText(envelopeOf(agent.profile));
    const text = `{"jsonrpc":"2.0","id":${message.id},"method":"server/discover","params":{"_meta":${meta}}}`;
    const request = readMessage(Buffer.from(text));
    const answer = await next(modernExchange(upper, new EnvelopedAgent(agent), request));
    if (answer.kind === 'result') this.#discovered.set(key, { answer, until: now + DISCOVERED_MS });
    return answer;
  }

  async #setLevel(upper: Exchange, next: Handler): Promise<Message> {
    const { serverId, agent, message } = upper;
    const level = stringIn(message, paramOf(message, 'level'));
    if (level === undefined || !LOG_LEVELS.includes(level)) {
      const what = `\`level\` must be one of ${LOG_LEVELS.join(', ')}`;
      throw new GatewayError('invalid_params', what, { serverId });
    }
    const discover = await this.#discover(upper, next);
    if (!isObject(discover, bodyOf(discover, 'capabilities', 'logging')))
      throw new GatewayError('method_unknown', `Server "${serverId}" offers no logging`, { serverId });
    this.#of(serverId, agent).level = level;
    return done(message.id);
  }

  async #subscribe({ serverId, agent, caller, message }: Exchange): Promise<Message> {
    const span = paramOf(message, 'uri');
    const uri = stringIn(message, span);
    if (uri === undefined) {
      const what = span ? `\`uri\` must be a text, not ${textOf(message, span)}` : '`uri` is missing';
      throw new GatewayError('invalid_params', what.slice(0, 200), { serverId });
    }
    const listener = this.#listener(serverId, agent, caller);
    if (message.method === 'resources/subscribe') await listener.subscribe(uri, caller);
    else await listener.unsubscribe(uri, caller);
    return done(message.id);
  }

  #listener(serverId: string, agent: Agent, caller: Caller): LegacyListener {
    const known = this.#of(serverId, agent);
    known.listener ??= new LegacyListener(this.#deps, serverId, agent, caller);
    return known.listener;
  }

  #of(serverId: string, agent: Agent): Known {
    const servers = this.#known.get(agent.id) ?? new Map<string, Known>();
    this.#known.set(agent.id, servers);
    const known = servers.get(serverId) ?? { level: undefined, listener: undefined };
    servers.set(serverId, known);
    return known;
  }
}

/** The empty result of what is done here. */
function done(id: string): Message {
  return readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{}}`));
}
