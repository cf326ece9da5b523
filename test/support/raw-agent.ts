import type { Wire } from './mcp-server.js';

export interface RawAgentOptions {
  readonly capabilities?: object;
  readonly revision?: string;
  readonly token?: string;
  /** Answers what the server asks: the `result`. */
  readonly onAsk?: (message: Wire) => unknown;
}

export interface Exchanged {
  readonly status: number;
  readonly headers: Headers;
  /** The response message's own text, as it came. */
  readonly text: string;
  readonly answer: Wire;
  /** Everything that came on this request's stream before the response. */
  readonly before: Wire[];
}

/** An agent of the initialize era over Streamable HTTP that sends exactly the bytes a test gives it. */
export class RawAgent {
  readonly url: string;
  readonly options: RawAgentOptions;
  token: string | undefined;
  session = '';
  /** What came on the GET stream, in order. */
  readonly general: Wire[] = [];
  initializeText = '';
  #lastId = 0;
  #stream: AbortController | undefined;
  readonly #waiting: { readonly ready: () => boolean; readonly done: () => void }[] = [];

  constructor(url: string, options: RawAgentOptions = {}) {
    this.url = url;
    this.options = options;
    this.token = options.token;
  }

  static async connect(url: string, options: RawAgentOptions = {}): Promise<RawAgent> {
    const agent = new RawAgent(url, options);
    await agent.initialize();
    return agent;
  }

  async initialize(): Promise<Exchanged> {
    const params = {
      protocolVersion: this.options.revision ?? '2025-11-25',
      capabilities: this.options.capabilities ?? {},
      clientInfo: { name: 'raw', version: '1' },
    };
    this.session = '';
    const done = await this.request('initialize', JSON.stringify(params));
    this.initializeText = done.text;
    this.session = done.headers.get('mcp-session-id') ?? '';
    await this.notify('notifications/initialized');
    return done;
  }

  /** Sends a request; `params` is JSON text and so is `id`. */
  async request(method: string, params?: string, id: string = String(++this.#lastId)): Promise<Exchanged> {
    const tail = params === undefined ? '' : `,"params":${params}`;
    return await this.exchange(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}${tail}}`);
  }

  async call(name: string, args: unknown = {}, meta?: unknown, id?: string): Promise<Exchanged> {
    return await this.request('tools/call', JSON.stringify({ name, arguments: args, _meta: meta }), id);
  }

  async notify(method: string, params?: unknown): Promise<number> {
    const response = await this.post(JSON.stringify({ jsonrpc: '2.0', method, params }));
    await response.text();
    return response.status;
  }

  post(body: string, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Response> {
    return fetch(this.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...this.#headers(),
        ...headers,
      },
      body,
      ...(signal ? { signal } : {}),
    });
  }

  /** Sends a body and reads its answer to the end, answering what the server asks meanwhile. */
  async exchange(body: string, headers: Record<string, string> = {}): Promise<Exchanged> {
    const response = await this.post(body, headers);
    const before: Wire[] = [];
    let text = '';
    if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
      for await (const data of eventsOf(response)) {
        const message = JSON.parse(data) as Wire;
        if (message.method === undefined) text = data;
        else {
          before.push(message);
          this.#asked(message);
        }
      }
    } else text = await response.text();
    const answer = (text ? JSON.parse(text) : undefined) as Wire;
    return { status: response.status, headers: response.headers, text, answer, before };
  }

  /** Opens the general stream; resolves when its headers came. */
  async listen(headers: Record<string, string> = {}): Promise<number> {
    this.#stream = new AbortController();
    const response = await fetch(this.url, {
      headers: { accept: 'text/event-stream', ...this.#headers(), ...headers },
      signal: this.#stream.signal,
    });
    if (response.ok) void this.#read(response).catch(() => {});
    else await response.text();
    return response.status;
  }

  stopListening(): void {
    this.#stream?.abort();
  }

  /** Resolves once the condition holds; looked at after each message on the general stream. */
  async until(ready: () => boolean): Promise<void> {
    if (ready()) return;
    await new Promise<void>((done) => this.#waiting.push({ ready, done }));
  }

  /** Ends the session. */
  async leave(): Promise<number> {
    this.stopListening();
    const response = await fetch(this.url, { method: 'DELETE', headers: this.#headers() });
    await response.text();
    return response.status;
  }

  async #read(response: Response): Promise<void> {
    for await (const data of eventsOf(response)) {
      const message = JSON.parse(data) as Wire;
      this.general.push(message);
      this.#asked(message);
      for (const waiting of [...this.#waiting]) if (waiting.ready()) waiting.done();
    }
  }

  #asked(message: Wire): void {
    if (message.id === undefined || message.method === undefined || !this.options.onAsk) return;
    const result = this.options.onAsk(message);
    if (result !== undefined) void this.post(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }));
  }

  #headers(): Record<string, string> {
    return {
      ...(this.session ? { 'mcp-session-id': this.session, 'mcp-protocol-version': '2025-11-25' } : {}),
      ...(this.token === undefined ? {} : { authorization: `Bearer ${this.token}` }),
    };
  }
}

/** The data of each event that has any. */
async function* eventsOf(response: Response): AsyncGenerator<string> {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    rest += decoder.decode(chunk as Uint8Array, { stream: true });
    const events = rest.split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events) {
      const data = event
        .split('\n')
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).trimStart())
        .join('\n');
      if (data) yield data;
    }
  }
}
