import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Held, serve } from '../support/manager-bench.js';
import type { McpServer, McpServerOptions, ServerCall } from '../support/mcp-server.js';
import { errorOf, openGateway, passUntil, remote, says, textOf, toolText } from '../support/pool-bench.js';

const LIST_CHANGED = 'notifications/tools/list_changed';

/** A server whose tool tells the session it is called in. */
async function naming(t: TestContext, options: McpServerOptions = {}) {
  return await serve(t, { ...options, on: { 'tools/call': ({ session }: ServerCall) => toolText(session) } });
}

async function openCapped(t: TestContext, server: McpServer, entry: object = {}, settings: object = {}) {
  const bench = await openGateway(t, { one: remote(server.url, entry) }, { settings });
  /** An agent with a token whose connection was used just now. */
  const used = async (token: string, listening = false) => {
    const agent = await bench.agent({ token });
    if (listening) await agent.listen();
    bench.clock.advance(1);
    return { agent, session: textOf(await agent.call('which')) };
  };
  return { ...bench, used };
}

test('a connection is not idle while an agent listens', async (t) => {
  const server = await naming(t);
  const { gateway, clock, used, happened } = await openCapped(t, server, {}, { connectionIdleMs: 60_000 });
  const { agent } = await used('A', true);
  await server.until(() => server.openStreams === 1);
  clock.advance(600_000);
  assert.equal(gateway.poolSize, 1);
  console.error('bc', gateway.poolSize, server.openStreams);server.broadcast(LIST_CHANGED);
  await agent.until(() => agent.general.some(says(LIST_CHANGED)));
  console.error('leaving');console.error(await agent.leave());
  clock.advance(600_000);
  console.error('adv', gateway.poolSize, clock.delays);await happened('server_disconnected');
  assert.equal(server.deleted, 1);
});
