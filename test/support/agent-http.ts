import { once } from 'node:events';
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { Wire } from './mcp-server.js';

export interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** One event as it came; `comment` is a frame without fields. */
export interface SseEvent {
  readonly comment: boolean;
  readonly event: string | undefined;
  readonly id: string | undefined;
  readonly data: string | undefined;
  /** The data as JSON, where there is any. */
  readonly json: Wire | undefined;
}

/** An HTTP answer that is read as it comes. */
export class Incoming {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly #res: IncomingMessage;
  readonly #events: SseEvent[] = [];
  #text = '';
  #parsed = 0;
  #ended = false;
  #cut = false;
  #look: () => void = () => {};

  constructor(res: IncomingMessage) {
    this.#res = res;
    this.status = res.statusCode ?? 0;
    this.headers = res.headers;
    res.setEncoding('utf8');
    res.on('data', (chunk: string) => {
      this.#text += chunk;
      this.#parse();
      this.#look();
    });
    res.on('error', () => {});
    res.on('close', () => {
      this.#ended = true;
      this.#cut = !res.complete;
      this.#look();
    });
  }

  /** The whole body; rejects if it was cut off. */
  async text(): Promise<string> {
    await this.#until(() => this.#ended);
    if (this.#cut) throw new Error('The answer was cut off');
    return this.#text;
  }

  async json(): Promise<Wire> {
    return JSON.parse(await this.text()) as Wire;
  }

  /** The next event or comment of a stream; undefined when it is over. */
  async next(): Promise<SseEvent | undefined> {
    await this.#until(() => this.#events.length > 0 || this.#ended);
    return this.#events.shift();
  }

  /** The next event that carries a message. */
  async message(): Promise<Wire | undefined> {
    for (;;) {
      const event = await this.next();
      if (!event || event.json) return event?.json;
    }
  }

  /** Every message until the stream is over. */
  async rest(): Promise<Wire[]> {
    const messages: Wire[] = [];
    for (let message = await this.message(); message; message = await this.message()) messages.push(message);
    return messages;
  }

  /** Stops reading; what the gateway sends piles up. */
  pause(): void {
    this.#res.pause();
  }

  /** Vanishes without a word. */
  drop(): void {
    this.#res.destroy();
  }

  #until(ready: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#look = () => {
        if (ready()) resolve();
      };
      this.#look();
    });
  }

  #parse(): void {
    for (
      let end = this.#text.indexOf('\n\n', this.#parsed);
      end >= 0;
      end = this.#text.indexOf('\n\n', this.#parsed)
    ) {
      this.#events.push(eventOf(this.#text.slice(this.#parsed, end)));
      this.#parsed = end + 2;
    }
  }
}

function eventOf(frame: string): SseEvent {
  const fields = frame.split('\n').map((line) => /^([^:]*):? ?(.*)$/s.exec(line) ?? []);
  const field = (name: string) => {
    const values = fields.filter(([, found]) => found === name).map(([, , value]) => value ?? '');
    return values.length > 0 ? values.join('\n') : undefined;
  };
  const data = field('data');
  const json = data?.startsWith('{') ? (JSON.parse(data) as Wire) : undefined;
  return { comment: frame.startsWith(':'), event: field('event'), id: field('id'), data, json };
}

/** Sends a request on a socket of its own and resolves when the head of its answer is there. */
export async function open(
  url: string,
  { method = 'GET', headers = {}, body }: Sent = {},
): Promise<Incoming> {
  const req = httpRequest(url, { method, headers, agent: false });
  req.on('error', () => {});
  const answered = Promise.race([
    once(req, 'response') as Promise<[IncomingMessage]>,
    once(req, 'close').then(() => {
      throw new Error('The socket was closed without an answer');
    }),
  ]);
  req.end(body);
  const [res] = await answered;
  return new Incoming(res);
}

/** Sends a request that is dropped before its answer comes. Resolves to what drops it, when the request has left. */
export async function begin(url: string, { method = 'POST', headers = {}, body }: Sent): Promise<() => void> {
  const req = httpRequest(url, { method, headers, agent: false });
  req.on('error', () => {});
  req.end(body);
  await once(req, 'finish');
  return () => req.destroy();
}
