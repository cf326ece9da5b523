import assert from 'node:assert/strict';
import { sha256Hex } from '../../src/base/hash.js';
import type { BridgeDeps, Servers } from '../../src/bridge/deps.js';
import { ToModern } from '../../src/bridge/to-modern.js';
import {
  type Agent,
  ANONYMOUS,
  type AskOptions,
  type Caller,
  type Exchange,
  type Handler,
} from '../../src/pipeline/exchange.js';
import { type Message, readMessage } from '../../src/wire/message.js';
import { FakeClock } from './fake-clock.js';
import type { Wire } from './mcp-server.js';
import { Watch } from './watch.js';

export const PARK_MS = 300_000;
export const PREFIX = 'io.modelcontextprotocol/';

/** What a modern server answers: JSON text of a result, or of an error as `{"error":…}`. */
export type Script = (request: Wire, exchange: Exchange) => string | Promise<string>;

/** A question that an agent was asked, and the means to answer it. */
export interface Asked {
  readonly message: Wire;
  /** Its bytes as text. */
  readonly raw: string;
  readonly signal: AbortSignal;
  /** `body` is the text of `"result":…` or `"error":…`. */
  answer(body: string): void;
  fail(failure: unknown): void;
}

export interface LegacyAgentOptions {
  readonly id?: string;
  readonly revision?: string;
  readonly capabilities?: string;
  readonly clientInfo?: string;
  readonly principal?: string;
  readonly token?: string;
}

/** A legacy agent at the bridge: what it heard and was asked, and what it sends. */
export class BridgedAgent implements Agent {
  readonly id: string;
  readonly profile: Agent['profile'];
  readonly caller: Caller;
  readonly listening = false;
  readonly heard: Wire[] = [];
  readonly asked: Asked[] = [];
  readonly #bench: LegacyOnModern;

  constructor(bench: LegacyOnModern, options: LegacyAgentOptions) {
    const { id = 'agent', revision = '2025-11-25', capabilities = '{}', principal, token } = options;
    this.#bench = bench;
    this.id = id;
    const clientInfo = options.clientInfo ?? '{"name":"old","version":"1"}';
    this.profile = { revision, capabilities, fingerprint: capabilities, clientInfo };
    const tokenHash = token === undefined ? undefined : sha256Hex(token);
    this.caller = { principal: principal ?? ANONYMOUS.principal, token, tokenHash };
  }

  notify(message: Message): void {
    this.heard.push(JSON.parse(message.bytes.toString()) as Wire);
  }

  ask(message: Message, { signal }: AskOptions): Promise<Message> {
    return new Promise((resolve, reject) => {
      const raw = message.bytes.toString();
      const answer = (body: string) =>
        resolve(readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${message.id},${body}}`)));
      this.asked.push({ message: JSON.parse(raw) as Wire, raw, signal, answer, fail: reject });
      if (signal.aborted) return reject(this.#bench.withdrawn());
      signal.addEventListener('abort', () => reject(this.#bench.withdrawn()), { once: true });
      this.#bench.watch.changed();
    });
  }

  /** Sends a request; `params` is JSON text and so is `id`. */
  request(method: string, params?: string, id = '1', signal?: AbortSignal): Promise<string> {
    const tail = params === undefined ? '' : `,"params":${params}`;
    return this.send(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}${tail}}`, signal);
  }

  /** Sends a text and resolves to the text of its response. */
  async send(text: string, signal: AbortSignal = new AbortController().signal): Promise<string> {
    const upper: Exchange = {
      ...{ serverId: 'one', era: 'legacy', agent: this, caller: this.caller, fresh: false, signal },
      message: readMessage(Buffer.from(text)),
      notify: (message) => this.notify(message),
      ask: (message, options) => this.ask(message, options),
    };
    return checked(await this.#bench.bridge.handle(upper, this.#bench.next)).bytes.toString();
  }

  /** The question of that number, the first being 1, as soon as it is asked. */
  async question(count = 1): Promise<Asked> {
    await this.#bench.watch.until(() => this.asked.length >= count);
    return this.asked[count - 1] as Asked;
  }
}

/** Legacy agents on a scripted modern server, without anything in between but the bridge. */
export class LegacyOnModern {
  readonly clock = new FakeClock();
  readonly watch = new Watch();
  /** What came to the server, oldest first. */
  readonly sent: Exchange[] = [];
  readonly bridge: ToModern;
  readonly next: Handler;
  script: Script;
  /** Place where a caller's lists are kept. */
  partitionOf: BridgeDeps['partitionOf'] = (serverId) => serverId;
  withdrawn: () => unknown = () => new Error('withdrawn');

  constructor(script: Script) {
    this.script = script;
    const unused = () => assert.fail('the bridge must not use this here');
    const servers: Servers = {
      handle: unused,
      notify: unused,
      listen: unused,
      leave: unused,
      listed: unused,
    };
    this.bridge = new ToModern({
      ...{ eras: { recall: unused, find: unused }, servers, clock: this.clock },
      ...{ random: Math.random, emit: () => {}, parkMs: PARK_MS, maxParkedCalls: 1, maxAgents: 1 },
      agentIdleMs: 1,
      partitionOf: (...who) => this.partitionOf(...who),
    });
    this.next = async (exchange) => {
      checked(exchange.message);
      this.sent.push(exchange);
      this.watch.changed();
      const body = await this.script(wire(exchange), exchange);
      const text = body.startsWith('{"error"') ? body.slice(1, -1) : `"result":${body}`;
      return readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${exchange.message.id},${text}}`));
    };
  }

  agent(options: LegacyAgentOptions = {}): BridgedAgent {
    return new BridgedAgent(this, options);
  }

  /** The request of that number at the server, the first being 1, as soon as it is there. */
  async nth(count: number): Promise<Exchange> {
    await this.watch.until(() => this.sent.length >= count);
    return this.sent[count - 1] as Exchange;
  }
}

/** A message whose members lie where they are said to; fails for any other. */
function checked(message: Message): Message {
  assert.deepEqual(message, readMessage(message.bytes));
  return message;
}

/** The message of an exchange as a server reads it. */
export function wire(exchange: Exchange | undefined): Wire {
  assert.ok(exchange, 'nothing was sent');
  return JSON.parse(exchange.message.bytes.toString()) as Wire;
}

/** The text of what came to the server. */
export function textOf(exchange: Exchange | undefined): string {
  assert.ok(exchange, 'nothing was sent');
  return exchange.message.bytes.toString();
}

/** A member of `_meta` that 2026-07-28 reserves, as the server reads it. */
export function said(exchange: Exchange | undefined, name: string): unknown {
  return wire(exchange).params._meta[PREFIX + name];
}

/** JSON text of a result that asks for these inputs. */
export function inputRequired(requests: string | undefined, state?: string): string {
  const members = ['"resultType":"input_required"'];
  if (requests !== undefined) members.push(`"inputRequests":${requests}`);
  if (state !== undefined) members.push(`"requestState":${state}`);
  return `{${members.join(',')}}`;
}

export const FORM =
  '{"method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{}}}}';
export const DONE = '{"resultType":"complete","content":[]}';
