import type { TestContext } from 'node:test';
import { type Incoming, open } from './agent-http.js';
import { McpServer, type McpServerOptions, Refusal, type ServerCall, type Wire } from './mcp-server.js';
import { DISCOVERED, listenText } from './modern-text.js';
import { Watch } from './watch.js';

export const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';
export const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/** One `subscriptions/listen` as a scripted server has it. */
export class Subscription {
  readonly message: Wire;
  readonly raw: string;
  readonly gone: AbortSignal;
  /** Breaks its stream. */
  readonly cut: () => void;
  readonly #emit: (text: string) => void;
  #answer!: (result: string) => void;
  #refuse!: (refusal: Refusal) => void;
  readonly answered: Promise<string>;

  constructor({ message, raw, gone, emit, cut }: ServerCall) {
    this.cut = cut;
    this.message = message;
    this.raw = raw;
    this.gone = gone;
    this.#emit = emit;
    this.answered = new Promise((resolve, reject) => {
      this.#answer = resolve;
      this.#refuse = reject;
    });
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  get filter(): any {
    return this.message.params.notifications;
  }

  /** Acknowledges; all that was asked for by default. */
  acknowledge(honoured: unknown = this.filter): void {
    this.tell(ACKNOWLEDGED, { notifications: honoured });
  }

  /** Sends a notification with the stamp of this subscription. */
  tell(method: string, params: object = {}): void {
    const stamp = { [SUBSCRIPTION_ID]: this.message.id };
    this.say(JSON.stringify({ jsonrpc: '2.0', method, params: { _meta: stamp, ...params } }));
  }

  /** Sends raw text on its stream. */
  say(text: string): void {
    if (!this.gone.aborted) this.#emit(text);
  }

  changed(kind = 'tools'): void {
    this.tell(`notifications/${kind}/list_changed`);
  }

  updated(uri: string): void {
    this.tell('notifications/resources/updated', { uri });
  }

  /** Ends it gently. */
  end(): void {
    this.#answer(JSON.stringify({ resultType: 'complete', _meta: { [SUBSCRIPTION_ID]: this.message.id } }));
  }

  refuse(code: number, message = 'no'): void {
    this.#refuse(new Refusal(code, message));
  }
}

/** A scripted server of 2026-07-28 over HTTP, and all that was subscribed to at it. */
export class ListenServer {
  readonly server: McpServer;
  readonly all: Subscription[] = [];
  /** What is done with each subscription that comes; it is acknowledged by default. */
  onListen: (subscription: Subscription) => void = (subscription) => subscription.acknowledge();
  readonly #watch: Watch;

  private constructor(server: McpServer, watch: Watch) {
    this.server = server;
    this.#watch = watch;
    server.on['subscriptions/listen'] = async (call) => {
      const subscription = new Subscription(call);
      this.all.push(subscription);
      call.gone.addEventListener('abort', () => watch.changed());
      this.onListen(subscription);
      watch.changed();
      return await subscription.answered;
    };
  }

  static async start(
    options: McpServerOptions = {},
    discovered = DISCOVERED,
    port = 0,
  ): Promise<ListenServer> {
    const on = { 'server/discover': () => discovered, 'tools/list': () => LIST, ...options.on };
    return new ListenServer(await McpServer.start({ ...options, on }, port), new Watch());
  }

  /** Those whose stream stands, oldest first. */
  get open(): Subscription[] {
    return this.all.filter(({ gone }) => !gone.aborted);
  }

  /** The newest. */
  get last(): Subscription {
    const last = this.all.at(-1);
    if (!last) throw new Error('Nobody has subscribed');
    return last;
  }

  /** Resolves once the condition holds; looked at whenever a subscription comes or goes. */
  until(ready: () => boolean): Promise<void> {
    return this.#watch.until(ready);
  }

  /** The subscription of that number, the first being 1, as soon as it has come. */
  async nth(count: number): Promise<Subscription> {
    await this.until(() => this.all.length >= count);
    return this.all[count - 1] as Subscription;
  }

  close(): Promise<void> {
    return this.server.close();
  }
}

const LIST = '{"resultType":"complete","tools":[],"ttlMs":60000,"cacheScope":"public"}';

export async function listenServer(
  t: TestContext,
  ...given: Parameters<typeof ListenServer.start>
): Promise<ListenServer> {
  const server = await ListenServer.start(...given);
  t.after(() => server.close());
  return server;
}

/** Posts a message of 2026-07-28, with the headers that mirror it. */
export function postModern(
  url: string,
  text: string,
  headers: Record<string, string> = {},
): Promise<Incoming> {
  const { method } = JSON.parse(text) as { readonly method: string };
  return open(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...headers,
    },
    body: text,
  });
}

/** An agent's subscription: what comes on it, one after the other. */
export async function subscribe(
  url: string,
  filter: object,
  id = '1',
  headers: Record<string, string> = {},
): Promise<Incoming> {
  return await postModern(url, listenText(id, filter), headers);
}

/** The same, when it was acknowledged; fails if anything else comes first. */
export async function subscribed(
  url: string,
  filter: object,
  id = '1',
  headers: Record<string, string> = {},
): Promise<{ readonly stream: Incoming; readonly honoured: unknown }> {
  const stream = await subscribe(url, filter, id, headers);
  const first = await stream.message();
  if (first?.method !== ACKNOWLEDGED) throw new Error(`Not acknowledged: ${JSON.stringify(first)}`);
  return { stream, honoured: first.params.notifications };
}

/** The next message of a stream in short: `tools/list_changed`, `resources/updated <uri>`. */
export async function news(stream: Incoming): Promise<string> {
  const message = await stream.message();
  if (!message) return 'end';
  const uri = message.params?.uri === undefined ? '' : ` ${message.params.uri}`;
  return (message.method ?? 'response').replace('notifications/', '') + uri;
}
