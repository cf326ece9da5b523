import { GatewayError } from '../base/errors.js';
import type { Agent, Caller, Exchange, Handler } from '../pipeline/exchange.js';
import { METHOD_NOT_FOUND } from '../protocol/codes.js';
import { error } from '../protocol/compose.js';
import { LOG_LEVELS } from '../protocol/log-levels.js';
import { type Message, readMessage } from '../wire/message.js';
import type { BridgeDeps } from './deps.js';
import { Discoveries } from './discoveries.js';
import { type Envelope, EnvelopedAgent, envelopeOf, metaText } from './envelope.js';
import { readingAnswers, readingParams, withdrawn } from './faults.js';
import { initialized } from './initialize-result.js';
import { legacyAnswer } from './legacy-answer.js';
import { LegacyListener } from './listen-to-modern.js';
import { bodyOf, isObject, paramOf, stringIn, textOf } from './members.js';
import { modernCall } from './modern-call.js';
import { WrappedTools } from './wrapped-tools.js';

/** Methods that no legacy revision has, or has in another form, so that the server's would be misunderstood. */
const FOREIGN: ReadonlySet<string> = new Set([
  'server/discover',
  'subscriptions/listen',
  'tasks/get',
  'tasks/list',
  'tasks/result',
  'tasks/cancel',
  'tasks/update',
]);

/** What the bridge remembers of one legacy agent on one modern server. */
interface Known {
  level: string | undefined;
  listener: LegacyListener | undefined;
}

/** How a legacy agent is spoken for with each request; the same as long as its level is. */
interface Voice {
  readonly level: string | undefined;
  readonly agent: EnvelopedAgent;
  readonly envelope: Envelope;
}

/**
 * Legacy agents on modern servers. A server of 2026-07-28 remembers nothing between two requests: what an agent of an older
 * revision said once is remembered here and said again with each of its requests.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning
 */
export class ToModern {
  readonly #deps: BridgeDeps;
  /** By agent id, then by server. */
  readonly #known = new Map<string, Map<string, Known>>();
  readonly #voices = new WeakMap<Agent, Voice>();
  readonly #discoveries: Discoveries;
  readonly #wrapped: WrappedTools;

  constructor(deps: BridgeDeps) {
    this.#deps = deps;
    this.#discoveries = new Discoveries(deps.clock);
    this.#wrapped = new WrappedTools(deps.partitionOf);
  }

  /** Answers as the agent's own revision has it. Rejects with GatewayError. */
  async handle(upper: Exchange, next: Handler): Promise<Message> {
    return await readingAnswers(upper.serverId, this.#handle(upper, next));
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
    if (FOREIGN.has(method)) return unknown(upper, `No legacy revision has ${method} of server`);
    switch (method) {
      case 'initialize':
        return await this.#initialize(upper, next);
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

  /** Whatever needs the server. Its hints stay in lists: whoever keeps those reads and removes them. */
  async #forward(upper: Exchange, next: Handler): Promise<Message> {
    const { serverId, message } = upper;
    const voice = readingParams(serverId, () => this.#voice(upper));
    const { clock, parkMs } = this.#deps;
    const answer = await modernCall(upper, next, { ...voice, clock, patienceMs: parkMs });
    if (answer.kind === 'error') return legacyAnswer(answer, serverId);
    switch (message.method) {
      case 'tools/list':
        return this.#wrapped.list(upper, legacyAnswer(answer, serverId));
      case 'tools/call':
        return legacyAnswer(answer, serverId, this.#wrapped.call(upper, answer));
      default:
        return legacyAnswer(answer, serverId);
    }
  }

  /** The agent's side negotiates the revision; nothing is begun at the server. */
  async #initialize(upper: Exchange, next: Handler): Promise<Message> {
    const { serverId, agent, message } = upper;
    const discover = legacyAnswer(await this.#discover(upper, next), serverId);
    return initialized(discover, message.id, agent.profile.revision, serverId);
  }

  /** One request serves all that come meanwhile, so that none of them can end it. */
  async #discover(upper: Exchange, next: Handler): Promise<Message> {
    const { serverId, agent, caller } = upper;
    const key = `${serverId}\n${this.#deps.partitionOf(serverId, agent, caller)}\n${agent.profile.fingerprint}`;
    return await this.#discoveries.of(key, async () => {
      const voice = readingParams(serverId, () => this.#voice(upper));
      const params = `{"_meta":${metaText(voice.envelope)}}`;
      const text = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":${params}}`;
      return await next({
        ...{ era: 'modern', serverId, agent: voice.agent, caller, fresh: false },
        message: readMessage(Buffer.from(text)),
        signal: new AbortController().signal,
        notify: () => {},
        ask: () => voice.agent.ask(),
      });
    });
  }

  /** https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging#setting-log-level */
  async #setLevel(upper: Exchange, next: Handler): Promise<Message> {
    const { serverId, agent, message, signal } = upper;
    const level = readingParams(serverId, () => stringIn(message, paramOf(message, 'level')));
    if (level === undefined || !LOG_LEVELS.includes(level)) {
      const what = `\`level\` must be one of ${LOG_LEVELS.join(', ')}`;
      throw new GatewayError('invalid_params', what, { serverId });
    }
    const discover = await this.#discover(upper, next);
    if (discover.kind === 'error') return legacyAnswer(discover, serverId);
    if (!isObject(discover, bodyOf(discover, 'capabilities', 'logging')))
      return unknown(upper, 'There is no logging at server');
    // Whoever has gone meanwhile is forgotten already.
    if (signal.aborted) throw withdrawn(serverId);
    this.#of(serverId, agent).level = level;
    return done(message.id);
  }

  async #subscribe({ serverId, agent, caller, message }: Exchange): Promise<Message> {
    const span = readingParams(serverId, () => paramOf(message, 'uri'));
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

  /** Throws JsonError where the agent's declarations are ambiguous. */
  #voice({ serverId, agent }: Exchange): Voice {
    const level = this.#known.get(agent.id)?.get(serverId)?.level;
    const known = this.#voices.get(agent);
    if (known && known.level === level) return known;
    const enveloped = known?.agent ?? new EnvelopedAgent(agent);
    const voice = { level, agent: enveloped, envelope: envelopeOf(agent.profile, level) };
    this.#voices.set(agent, voice);
    return voice;
  }

  #of(serverId: string, agent: Agent): Known {
    const servers = this.#known.get(agent.id) ?? new Map<string, Known>();
    this.#known.set(agent.id, servers);
    const known = servers.get(serverId) ?? { level: undefined, listener: undefined };
    servers.set(serverId, known);
    return known;
  }
}

/** An answer, as a failure would have the HTTP status of a lost session. */
function unknown({ serverId, message }: Exchange, what: string): Message {
  return error(message.id, METHOD_NOT_FOUND, `${what} "${serverId}"`, { server: serverId });
}

/** The empty result of what is done here. */
function done(id: string): Message {
  return readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{}}`));
}
