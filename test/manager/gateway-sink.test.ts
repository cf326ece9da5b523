import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { parseConfig, startGateway } from '../../src/index.js';
import { McpServer } from '../support/mcp-server.js';
import { RawAgent } from '../support/raw-agent.js';

test('a sink of events that fails costs no agent an answer', async (t) => {
  const server = await McpServer.start();
  t.after(() => server.close());
  const { config } = parseConfig({ port: 0, mcpServers: { one: { url: server.url } } });
  const warned = once(process, 'warning');
  const gateway = await startGateway(config, {
    emit: () => {
      throw new Error('the sink is full');
    },
  });
  t.after(() => gateway.close());
  const agent = await RawAgent.connect(`${gateway.url}/mcp`);
  for (const _ of ['miss', 'hit'])
    assert.deepEqual((await agent.request('tools/list')).answer.result, { tools: [] });
  assert.match(String((await warned)[0]), /the sink is full/);
});
