import { once } from 'node:events';
import type { TestContext } from 'node:test';
import type { Backend } from '../../src/downstream/backend.js';
import { type HttpService, startHttp } from '../../src/downstream/http.js';
import type { GatewayEvent } from '../../src/pipeline/events.js';
import type { Exchange, Handler } from '../../src/pipeline/exchange.js';
import type { HeaderPlan } from '../../src/protocol/tool-headers.js';
import { type Message, readMessage } from '../../src/wire/message.js';
import { type Incoming, open, type Sent } from './agent-http.js';
import { FakeClock } from './fake-clock.js';
import { type Declaration, modernText } from './modern-text.js';

export interface ListenerOptions {
  readonly handle?: Handler;
  readonly plan?: HeaderPlan;
  readonly maxSessions?: number;
}

/** The agents' side alone, with time that stands still and a function in place of all behind it. */
export interface ModernListener {
  readonly service: HttpService;
  readonly clock: FakeClock;
  readonly events: GatewayEvent[];
  readonly exchanges: Exchange[];
  readonly notified: Message[];
  post(sent: Post): Promise<Incoming>;
  send(sent: Sent, path?: string): Promise<Incoming>;
  /** Resolves with the next exchange that arrives. */
  arrived(): Promise<Exchange>;
}

export interface Post {
  readonly method?: string;
  readonly id?: string;
  readonly params?: object;
  readonly declaration?: Declaration;
  /** In place of the headers that mirror the body; undefined leaves one out. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** In place of the body. */
  readonly body?: string;
}

export const PLAIN: Readonly<Record<string, string>> = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};

/** The answer to an exchange; `result` is JSON text. */
export function answered({ message }: Exchange, result = '{"resultType":"complete"}'): Message {
  return readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${message.id},"result":${result}}`));
}

export function note(method: string, params: object = {}): Message {
  return readMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', method, params })));
}

export async function modernListener(t: TestContext, options: ListenerOptions = {}): Promise<ModernListener> {
  const clock = new FakeClock();
  const events: GatewayEvent[] = [];
  const exchanges: Exchange[] = [];
  const notified: Message[] = [];
  let look: (exchange: Exchange) => void = () => {};
  const handle = options.handle ?? (async (exchange: Exchange) => answered(exchange));
  const backend: Backend = {
    handle(exchange) {
      exchanges.push(exchange);
      look(exchange);
      return handle(exchange);
    },
    mirroredParams: async () => options.plan,
    notify: (_, __, ___, message) => void notified.push(message),
    listen: () => {},
    leave: () => {},
    serverIds: () => ['one'],
  };
  const service = await startHttp(
    {
      ...{ host: '127.0.0.1', port: 0, allowedHosts: [], allowedOrigins: [] },
      ...{ maxSessions: options.maxSessions ?? 100, sessionIdleMs: 1_000_000, keepAliveMs: 15_000 },
      ...{ resumeMs: 60_000, replayMaxBytes: 1_000_000, maxRequestBytes: 100_000 },
      clock,
      emit: (event) => events.push(event),
    },
    backend,
  );
  t.after(() => service.close());
  const send = (sent: Sent, path = '/mcp') => open(service.url + path, sent);
  return {
    ...{ service, clock, events, exchanges, notified, send },
    post: ({ method = 'tools/list', id = '1', params = {}, declaration = {}, headers = {}, body }) => {
      const name = (params as { name?: string; uri?: string }).name ?? (params as { uri?: string }).uri;
      const all: Record<string, string | undefined> = {
        ...PLAIN,
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...(name === undefined ? {} : { 'mcp-name': name }),
        ...headers,
      };
      const given = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined);
      return send({
        method: 'POST',
        headers: Object.fromEntries(given),
        body: body ?? modernText(method, id, params, declaration),
      });
    },
    arrived: () =>
      new Promise((resolve) => {
        look = resolve;
      }),
  };
}

/** Resolves when an exchange is given up. */
export async function aborted({ signal }: Exchange): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
