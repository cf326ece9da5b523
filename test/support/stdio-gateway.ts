import type { TestContext } from 'node:test';
import { type StdioGateway, serveAgentOnStdio } from '../../src/app/gateway.js';
import { parseConfig } from '../../src/config/load.js';
import type { GatewayEvent } from '../../src/pipeline/events.js';
import type { ForwardingOptions } from './forwarding.js';
import { LineAgent } from './line-agent.js';
import { Happenings } from './stdio-harness.js';

/** A gateway that serves one agent on a pair of streams, and that agent's end of them. */
export interface StdioBench {
  readonly agent: LineAgent;
  readonly gateway: StdioGateway;
  readonly events: Happenings<GatewayEvent>;
  /** Why the next message of this method was dropped, whether it was already or not. */
  dropped(method: string): Promise<string>;
}

/** Starts it; it ends with the test, and what is `behind` it ends then. */
export function stdioGateway(t: TestContext, options: ForwardingOptions, serverId = 'one'): StdioBench {
  const { servers, behind = [], clock, settings } = options;
  const { config } = parseConfig({ ...settings, mcpServers: servers }, {});
  const events = new Happenings<GatewayEvent>();
  const agent = new LineAgent();
  const gateway = serveAgentOnStdio(
    config,
    { serverId, stdin: agent.stdin, stdout: agent.stdout },
    { emit: (event) => events.add(event), ...(clock ? { clock } : {}) },
  );
  t.after(async () => {
    // What was written has to leave before the gateway is gone.
    agent.stdout.resume();
    await gateway.close();
    await Promise.all(behind.map((one) => one.close()));
  });
  return {
    agent,
    gateway,
    events,
    async dropped(method) {
      const event = await events.first((one) => one.type === 'message_dropped' && one.method === method);
      return event.type === 'message_dropped' ? event.why : '';
    },
  };
}
