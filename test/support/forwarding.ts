import type { TestContext } from 'node:test';
import { type Gateway, startGateway } from '../../src/app/gateway.js';
import type { Clock } from '../../src/base/clock.js';
import { parseConfig } from '../../src/config/load.js';
import type { GatewayEvent } from '../../src/pipeline/events.js';
import { TestAgent, type TestAgentOptions } from './agent-gateway.js';
import type { Incoming } from './agent-http.js';
import type { Wire } from './mcp-server.js';
import { Happenings } from './stdio-harness.js';

/** A test that waits for what never comes ends after this. */
export const PATIENCE = { timeout: 20_000 };

/** Something that a test ends after its gateway. */
interface Closable {
  close(): Promise<void>;
}

export interface ForwardingOptions {
  /** Entries below `mcpServers`. */
  readonly servers: Readonly<Record<string, object>>;
  /** Closed behind the gateway. */
  readonly behind?: readonly Closable[];
  readonly clock?: Clock;
  /** General settings. */
  readonly settings?: object;
}

/** A gateway with its events. */
export class Forwarding {
  readonly gateway: Gateway;
  readonly events: Happenings<GatewayEvent>;

  constructor(gateway: Gateway, events: Happenings<GatewayEvent>) {
    this.gateway = gateway;
    this.events = events;
  }

  url(serverId = 'one'): string {
    return `${this.gateway.url}/servers/${serverId}/mcp`;
  }

  agent(options: TestAgentOptions = {}, serverId = 'one'): Promise<TestAgent> {
    return TestAgent.connect(this.url(serverId), options);
  }

  /** An agent whose general stream is open, and that stream. */
  async listener(
    options: TestAgentOptions = {},
    serverId = 'one',
  ): Promise<{ readonly agent: TestAgent; readonly stream: Incoming }> {
    const agent = await this.agent(options, serverId);
    return { agent, stream: await agent.listen() };
  }

  /** The next event of a dropped message of this method, whether it came already or not. */
  async dropped(method: string): Promise<string> {
    const event = await this.events.first((one) => one.type === 'message_dropped' && one.method === method);
    return event.type === 'message_dropped' ? event.why : '';
  }
}

export async function forwarding(t: TestContext, options: ForwardingOptions): Promise<Forwarding> {
  const { servers, behind = [], clock, settings } = options;
  const { config } = parseConfig({ port: 0, ...settings, mcpServers: servers }, {});
  const events = new Happenings<GatewayEvent>();
  const gateway = await startGateway(config, {
    emit: (event) => events.add(event),
    ...(clock ? { clock } : {}),
  });
  const bench = new Forwarding(gateway, events);
  t.after(async () => {
    await gateway.close();
    await Promise.all(behind.map((one) => one.close()));
  });
  return bench;
}

/** Everything that an answer brings from here on, its response last, whether it is a stream or plain JSON. */
export async function restOf(answer: Incoming | Promise<Incoming>): Promise<Wire[]> {
  const incoming = await answer;
  const isStream = incoming.headers['content-type']?.startsWith('text/event-stream');
  return isStream ? await incoming.rest() : [await incoming.json()];
}

/** The response that an answer ends with. */
export async function responseOf(answer: Incoming | Promise<Incoming>): Promise<Wire> {
  const last = (await restOf(answer)).at(-1);
  if (!last) throw new Error('The answer ended without a response');
  return last;
}

/** The text of the next message on a stream, as it came. */
export async function nextText(stream: Incoming | Promise<Incoming>): Promise<string> {
  for (;;) {
    const event = await (await stream).next();
    if (!event) throw new Error('The stream ended');
    if (event.json) return event.data ?? '';
  }
}
