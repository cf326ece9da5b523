import { sha256Hex } from '../../src/base/hash.js';
import { Doubts } from '../../src/cache/doubts.js';
import { cacheLayer } from '../../src/cache/layer.js';
import { memoryStore } from '../../src/cache/memory.js';
import type { Store } from '../../src/cache/store.js';
import { type Change, ChangeBus } from '../../src/pipeline/changes.js';
import type { GatewayEvent } from '../../src/pipeline/events.js';
import {
  type Agent,
  type AskOptions,
  type Caller,
  type Exchange,
  type Handler,
  stack,
} from '../../src/pipeline/exchange.js';
import { DEFAULT_TOOLLIST_TTL_MS, MAX_TTL_MS } from '../../src/protocol/hints.js';
import { poolKey } from '../../src/protocol/pool-key.js';
import type { Era } from '../../src/protocol/revisions.js';
import { type Message, readMessage } from '../../src/wire/message.js';
import { FakeClock } from '../support/fake-clock.js';

/** What a test may say of a listing; the rest is an anonymous agent's first page of `alpha`'s tools. */
export interface Ask {
  readonly serverId?: string;
  readonly method?: string;
  /** JSON text of `params`; empty: none. */
  readonly params?: string;
  readonly id?: string;
  readonly token?: string | undefined;
  readonly fingerprint?: string;
  /** Id of the agent that asks. */
  readonly agent?: string;
  /** Legacy by default. */
  readonly era?: Era;
  readonly fresh?: boolean;
  readonly signal?: AbortSignal;
  readonly notify?: (message: Message) => void;
  readonly ask?: (message: Message, options: AskOptions) => Promise<Message>;
}

export interface Settings {
  readonly store?: Store;
  readonly defaultTtlMs?: (serverId: string) => number;
  readonly maxTtlMs?: number;
  readonly sharePublic?: (serverId: string) => boolean | undefined;
  readonly isolate?: (agent: Agent) => string;
  readonly hints?: 'modern' | 'always';
}

/** A pipeline of the cache and, below it, a function in place of a server. */
export class Gateway {
  readonly clock = new FakeClock();
  readonly changes = new ChangeBus();
  readonly doubts = new Doubts();
  readonly events: GatewayEvent[] = [];
  /** Requests that reached the server. */
  readonly wire: Exchange[] = [];
  readonly published: Change[] = [];
  readonly #handle: Handler;

  constructor(server: Handler, settings: Settings = {}) {
    const { isolate = () => '' } = settings;
    const layer = cacheLayer({
      clock: this.clock,
      store: settings.store ?? memoryStore({ maxBytes: 64 * 1024 * 1024, maxEntries: 10_000 }),
      changes: this.changes,
      doubts: this.doubts,
      emit: (event) => this.events.push(event),
      rules: {
        defaultTtlMs: settings.defaultTtlMs ?? (() => DEFAULT_TOOLLIST_TTL_MS),
        maxTtlMs: settings.maxTtlMs ?? MAX_TTL_MS,
      },
      hints: settings.hints ?? 'modern',
      sharePublic: settings.sharePublic ?? (() => undefined),
      partitionOf: (serverId, agent, caller) => poolKey(serverId, caller.tokenHash) + isolate(agent),
    });
    this.changes.onChange((change) => this.published.push(change));
    this.#handle = stack([layer], (exchange) => {
      this.wire.push(exchange);
      return server(exchange);
    });
  }

  send(ask: Ask = {}): Promise<Message> {
    return this.#handle(exchangeOf(ask));
  }

  /** The result of a listing, parsed; an error answer is returned as its `error` object. */
  async list(ask: Ask = {}): Promise<Record<string, unknown>> {
    return resultOf(await this.send(ask));
  }

  changed(serverId = 'alpha', change: Partial<Change> = {}): void {
    this.changes.publish({ serverId, reason: 'list_changed', kinds: [], ...change });
  }

  outcomes(): string[] {
    return this.events.flatMap((event) => (event.type === 'cache_outcome' ? [event.outcome] : []));
  }
}

export function exchangeOf(ask: Ask): Exchange {
  const { serverId = 'alpha', method = 'tools/list', params = '', id = '1', fingerprint = '{}' } = ask;
  const tail = params === '' ? '' : `,"params":${params}`;
  const agent: Agent = {
    id: ask.agent ?? 'agent',
    profile: { revision: '2025-11-25', capabilities: '{}', fingerprint, clientInfo: '' },
    listening: false,
    notify: () => {},
    ask: () => Promise.reject(new Error('not asked')),
  };
  return {
    serverId,
    message: readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"${method}"${tail}}`)),
    era: ask.era ?? 'legacy',
    agent,
    caller: callerOf(ask.token),
    signal: ask.signal ?? new AbortController().signal,
    fresh: ask.fresh ?? false,
    notify: ask.notify ?? (() => {}),
    ask: ask.ask ?? (() => Promise.reject(new Error('not asked'))),
  };
}

export function callerOf(token: string | undefined): Caller {
  return { principal: 'anonymous', token, tokenHash: token === undefined ? undefined : sha256Hex(token) };
}

/** A response in the spelling given; `result` is JSON text. */
export function answer(exchange: Exchange, result: string): Message {
  return readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${exchange.message.id},"result":${result}}`));
}

export function refusal(exchange: Exchange, code: number): Message {
  const error = JSON.stringify({ code, message: 'no' });
  return readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${exchange.message.id},"error":${error}}`));
}

/** A result of `tools/list` that names the tools, and says of itself what `hints` says. */
export function tools(names: readonly string[], hints: Record<string, unknown> = {}): string {
  return JSON.stringify({
    tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })),
    ...hints,
  });
}

/** A server whose every listing names how many came before it, with the hints that the test sets. */
export function countingServer(hints: Record<string, unknown> = {}): Handler {
  let count = 0;
  return async (exchange) => answer(exchange, tools([`v${++count}`], hints));
}

export function resultOf(message: Message): Record<string, unknown> {
  const parsed = JSON.parse(message.bytes.toString('utf8'));
  return parsed.result ?? parsed.error;
}

export function namesOf(result: Record<string, unknown>): string[] {
  return (result['tools'] as { name: string }[]).map(({ name }) => name);
}

/** A server that answers when the test says so, in any order. */
export class HeldServer {
  readonly held: { readonly exchange: Exchange; settle: (answer: Message | Error) => void }[] = [];

  readonly handler: Handler = (exchange) =>
    new Promise((resolve, reject) => {
      const settle = (answer: Message | Error) =>
        answer instanceof Error ? reject(answer) : resolve(answer);
      this.held.push({ exchange, settle });
    });

  /** Answers a held request, the oldest unless told otherwise. */
  release(result: string | Error, at = 0): void {
    const [request] = this.held.splice(at, 1);
    if (!request) throw new Error('Nothing is held');
    request.settle(result instanceof Error ? result : answer(request.exchange, result));
  }
}

/** Lets everything run that waits for no more than promises. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
