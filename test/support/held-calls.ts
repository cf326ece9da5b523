import { callText, type TestAgent } from './agent-gateway.js';
import type { Incoming } from './agent-http.js';
import type { ChannelCall, ChannelServer } from './channel-server.js';

/** Calls that a server keeps open until the test answers them, by the name of their tool. */
export class HeldCalls {
  readonly server: ChannelServer;
  readonly #calls = new Map<string, ChannelCall>();

  constructor(server: ChannelServer) {
    this.server = server;
    server.on['tools/call'] = (call) => {
      this.#calls.set(call.message.params.name, call);
      return undefined;
    };
  }

  /** Sends a call and resolves when the server has it; the head of its answer comes with the first message on it. */
  async begin(agent: TestAgent, name: string, id = '1', more = ''): Promise<{ answer: Promise<Incoming> }> {
    this.#calls.delete(name);
    const answer = agent.open(callText(name, id, more));
    answer.catch(() => {});
    await this.server.until(() => this.#calls.has(name));
    return { answer };
  }

  get(name: string): ChannelCall {
    const call = this.#calls.get(name);
    if (!call) throw new Error(`No call of ${name} is open`);
    return call;
  }

  /** The progress token that the server was given for a call. */
  token(name: string): unknown {
    return this.get(name).message.params._meta?.progressToken;
  }

  answer(name: string, result = '{"content":[]}'): void {
    this.get(name).answer(result);
  }
}
