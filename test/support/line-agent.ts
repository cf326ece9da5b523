import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { initializeText, POST_HEADERS } from './agent-gateway.js';
import type { Incoming } from './agent-http.js';
import { open } from './agent-http.js';
import { nextText } from './forwarding.js';
import type { Wire } from './mcp-server.js';

/** An agent that has one way for everything, and speaks in texts. */
export interface TextAgent {
  say(text: string): Promise<void>;
  /** The next message, whatever it is. */
  hear(): Promise<string>;
}

/** Does the handshake of the initialize era. */
export async function greet(agent: TextAgent, capabilities: object = {}): Promise<void> {
  await agent.say(initializeText({ capabilities }, '"hello"'));
  await agent.hear();
  await agent.say('{"jsonrpc":"2.0","method":"notifications/initialized"}');
}

/** The agent's end of a pair of streams. */
export class LineAgent implements TextAgent {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly #lines: string[] = [];
  #rest = '';

  constructor() {
    this.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (this.#rest + chunk).split('\n');
      this.#rest = lines.pop() ?? '';
      this.#lines.push(...lines);
      if (lines.length > 0) this.stdout.emit('line');
    });
  }

  async say(text: string): Promise<void> {
    this.stdin.write(`${text}\n`);
  }

  async hear(): Promise<string> {
    while (this.#lines.length === 0) await once(this.stdout, 'line');
    return this.#lines.shift() ?? '';
  }

  /** The next message, parsed. */
  async hearWire(): Promise<Wire> {
    return JSON.parse(await this.hear()) as Wire;
  }
}

/** An agent of the oldest HTTP transport: a stream on which everything comes, and a path to post to. */
export class PairAgent implements TextAgent {
  readonly #stream: Incoming;
  readonly #endpoint: string;

  private constructor(stream: Incoming, endpoint: string) {
    this.#stream = stream;
    this.#endpoint = endpoint;
  }

  static async connect(url: string): Promise<PairAgent> {
    const stream = await open(url, { headers: { accept: 'text/event-stream' } });
    const endpoint = await stream.next();
    return new PairAgent(stream, new URL(endpoint?.data ?? '', url).href);
  }

  async say(text: string): Promise<void> {
    const answer = await open(this.#endpoint, { method: 'POST', headers: POST_HEADERS, body: text });
    await answer.text();
  }

  hear(): Promise<string> {
    return nextText(this.#stream);
  }
}
