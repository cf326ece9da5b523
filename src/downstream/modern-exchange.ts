import { GatewayError } from '../base/errors.js';
import { sha256Hex } from '../base/hash.js';
import type { Agent, AgentProfile, Caller, Exchange } from '../pipeline/exchange.js';
import { severity } from '../protocol/log-levels.js';
import { JsonError, member, stringAt } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import type { ModernRequest } from './modern-request.js';
import type { Outlet } from './reply.js';

/**
 * An agent of the modern era, as far as one request tells: it has no session, is not listening, and cannot be asked.
 * Requests of one caller that declare the same are taken as one agent's.
 */
export class ModernAgent implements Agent {
  readonly profile: AgentProfile;
  readonly listening = false;
  readonly #caller: Caller;
  #id: string | undefined;

  constructor(profile: AgentProfile, caller: Caller) {
    this.profile = profile;
    this.#caller = caller;
  }

  get id(): string {
    const { principal, tokenHash } = this.#caller;
    this.#id ??= sha256Hex(JSON.stringify(['modern', principal, tokenHash, this.profile.fingerprint]));
    return this.#id;
  }

  notify(): void {}

  ask(): Promise<Message> {
    return Promise.reject(
      new GatewayError('agent_unreachable', 'An agent of 2026-07-28 is asked by `input_required` only'),
    );
  }
}

export interface ModernExchangeOptions {
  readonly serverId: string;
  readonly message: Message;
  readonly request: ModernRequest;
  readonly caller: Caller;
  readonly fresh: boolean;
  readonly outlet: Outlet;
  readonly dropped: (message: Message, why: string) => void;
}

/** One request of an agent of the modern era on its way. */
export class ModernExchange implements Exchange {
  readonly era = 'modern';
  readonly serverId: string;
  readonly message: Message;
  readonly agent: ModernAgent;
  readonly caller: Caller;
  readonly fresh: boolean;
  readonly #options: ModernExchangeOptions;
  #aborter: AbortController | undefined;
  #over = false;

  constructor(options: ModernExchangeOptions) {
    this.#options = options;
    this.serverId = options.serverId;
    this.message = options.message;
    this.caller = options.caller;
    this.fresh = options.fresh;
    this.agent = new ModernAgent(options.request.profile, options.caller);
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
    const { request, outlet, dropped } = this.#options;
    if (message.method === 'notifications/message' && !isWanted(message, request.logLevel)) return;
    if (this.#over || !outlet.send(message.bytes)) dropped(message, 'its request has no stream');
  }

  ask(): Promise<Message> {
    return this.agent.ask();
  }

  /** The request has its answer. */
  finish(): void {
    this.#over = true;
  }

  /** Gives the request up; the servers' side learns why. */
  abort(reason: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#aborter ??= new AbortController();
    this.#aborter.abort(reason);
  }
}

/** Nothing is logged to an agent that did not ask for it with this request. */
function isWanted({ bytes, params }: Message, wanted: string | undefined): boolean {
  if (wanted === undefined) return false;
  try {
    const span = params && member(bytes, params.start, 'level');
    const level = span && bytes[span.start] === 0x22 ? stringAt(bytes, span.start, span.end) : undefined;
    return severity(level) >= severity(wanted);
  } catch (error) {
    if (error instanceof JsonError) return false;
    throw error;
  }
}
