import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseConfig, startGateway } from '../../src/index.js';
import { TestAgent } from '../support/agent-gateway.js';
import { McpServer, type Wire } from '../support/mcp-server.js';
import { RawAgent } from '../support/raw-agent.js';

test('a server may have a thousand questions open within one call; more are refused at once', async (t) => {
  const warnings: Error[] = [];
  const warned = (warning: Error) => warnings.push(warning);
  process.on('warning', warned);
  t.after(() => process.off('warning', warned));
  let refused: Wire[] = [];
  let answered = 0;
  const server = await McpServer.start({
    on: {
      'tools/call': async ({ ask }) => {
        const asked = Array.from({ length: 1_200 }, () => ask('sampling/createMessage', { messages: [] }));
        const answers = await Promise.all(asked);
        refused = answers.filter(({ error }) => error);
        answered = answers.length - refused.length;
        return '{"content":[]}';
      },
    },
  });
  t.after(() => server.close());
  const { config } = parseConfig({ port: 0, mcpServers: { one: { url: server.url } } });
  const gateway = await startGateway(config);
  t.after(() => gateway.close());
  const held: Wire[] = [];
  const agent: RawAgent = await RawAgent.connect(`${gateway.url}/mcp`, {
    capabilities: { sampling: {} },
    onAsk: (question) => {
      held.push(question);
      // Nothing is answered before as many are open as may be.
      if (held.length === 1_000) void answerAll(agent, held);
      return undefined;
    },
  });
  assert.deepEqual((await agent.call('x')).answer.result, { content: [] });
  assert.deepEqual([answered, refused.length], [1_000, 200]);
  assert.match(refused[0]?.error?.message ?? '', /1000 questions of this server are open/);
  assert.deepEqual(
    warnings.map(({ name }) => name),
    [],
  );
});

async function answerAll(agent: RawAgent, questions: readonly Wire[]): Promise<void> {
  for (const { id } of questions) {
    const response = await agent.post(JSON.stringify({ jsonrpc: '2.0', id, result: { model: 'm' } }));
    await response.text();
  }
}

test('a question that waits is withdrawn from the agent that takes its call back, before its stream ends', async (t) => {
  const server = await McpServer.start({
    on: {
      'tools/call': async ({ ask }) => {
        await ask('sampling/createMessage', { messages: [] });
        return '{"content":[]}';
      },
    },
  });
  t.after(() => server.close());
  const { config } = parseConfig({ port: 0, mcpServers: { one: { url: server.url } } });
  const gateway = await startGateway(config);
  t.after(() => gateway.close());
  const agent = await TestAgent.connect(`${gateway.url}/mcp`, { capabilities: { sampling: {} } });
  const call = await agent.call('x', '"c"');
  const question = await call.message();
  const cancelled = JSON.stringify({
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { requestId: 'c', reason: 'changed my mind' },
  });
  await agent.post(cancelled);
  const withdrawn = (await call.rest()).filter(({ method }) => method === 'notifications/cancelled');
  assert.deepEqual(
    withdrawn.map(({ params }) => params.requestId),
    [question?.id],
  );
});
