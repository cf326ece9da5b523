import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { startFixtureServer } from '../conformance/fixture-server.js';
import { type Forwarding, forwarding, PATIENCE } from '../support/forwarding.js';
import type { Wire } from '../support/mcp-server.js';
import { ADA } from '../support/modern-on-legacy.js';
import { modernPost, responseOf } from '../support/modern-post.js';

const EVERYTHING = createRequire(import.meta.url).resolve(
  '@modelcontextprotocol/server-everything/dist/index.js',
);
const SAID = { role: 'assistant' as const, content: { type: 'text' as const, text: 'sampled' }, model: 'm' };
const ROOTS = { roots: [{ uri: 'file:///home/ada', name: 'ada' }] };
const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

/** The reference server on a pipe, behind a gateway. */
function everything(t: TestContext): Promise<Forwarding> {
  return forwarding(t, { servers: { one: { command: process.execPath, args: [EVERYTHING, 'stdio'] } } });
}

/** The official client, of 2026-07-28 alone. */
async function agent(t: TestContext, url: string): Promise<Client> {
  const client = new Client(
    { name: 'official', version: '1' },
    { capabilities: CAPABILITIES, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }));
  client.setRequestHandler('sampling/createMessage', () => SAID);
  client.setRequestHandler('roots/list', () => ROOTS);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  t.after(() => client.close());
  return client;
}

function textIn(result: { content: unknown }): string {
  return (result.content as { text?: string }[]).map(({ text }) => text ?? '').join('\n');
}

test('an official agent uses the reference server as if it were of its own revision', PATIENCE, async (t) => {
  const gateway = await everything(t);
  const client = await agent(t, gateway.url());
  const { tools } = await client.listTools();
  assert.ok(tools.some(({ name }) => name === 'trigger-elicitation-request'));
  const call = async (name: string, args: Record<string, unknown> = {}, more: object = {}) =>
    textIn(await client.callTool({ name, arguments: args }, more));
  assert.match(await call('echo', { message: 'hé "llo"' }), /hé "llo"/);
  assert.match(await call('trigger-elicitation-request'), /Ada/);
  assert.match(await call('trigger-sampling-request', { prompt: 'x' }), /sampled/);
  const steps: number[] = [];
  const onprogress = ({ progress }: { progress: number }) => void steps.push(progress);
  await call('trigger-long-running-operation', { duration: 0.05, steps: 3 }, { onprogress });
  assert.deepEqual(steps, [1, 2, 3]);
  const { resources } = await client.listResources();
  const read = await client.readResource({ uri: resources[0]?.uri ?? '' });
  assert.equal(read.contents[0]?.uri, resources[0]?.uri);
});

test(
  'calls of one agent that ask at the same time on a pipe all get what they asked for',
  PATIENCE,
  async (t) => {
    const gateway = await everything(t);
    const client = await agent(t, gateway.url());
    const call = async () =>
      textIn(await client.callTool({ name: 'trigger-elicitation-request', arguments: {} }));
    for (const said of await Promise.all([call(), call(), call()])) assert.match(said, /Ada/);
  },
);

test('an error of the reference server that wants URLs opened asks for them first', PATIENCE, async (t) => {
  const gateway = await everything(t);
  const client = await agent(t, gateway.url());
  const urls: unknown[] = [];
  client.setRequestHandler('elicitation/create', ({ params }) => {
    urls.push('url' in params ? params.url : undefined);
    return { action: 'accept' };
  });
  const args = { url: 'https://example.com/authorize', elicitationId: 'e1' };
  const call = client.callTool({ name: 'trigger-url-elicitation', arguments: { ...args, errorPath: true } });
  assert.match(textIn(await call), /User completed/);
  assert.deepEqual(urls, ['https://modelcontextprotocol.io', args.url]);
});

test('a task of the reference server asks, is answered, and ends with its report', PATIENCE, async (t) => {
  const gateway = await everything(t);
  const capabilities = { ...CAPABILITIES, extensions: { 'io.modelcontextprotocol/tasks': {} } };
  const send = async (method: string, params: object) =>
    responseOf(await modernPost(gateway.url(), method, params, { declaration: { capabilities } }));
  const created = await send('tools/call', {
    name: 'simulate-research-query',
    arguments: { topic: 'python', ambiguous: true },
  });
  assert.equal(created.result?.resultType, 'task', JSON.stringify(created));
  const { taskId, pollIntervalMs } = created.result;
  const asked: Wire[] = [];
  for (;;) {
    const { result } = await send('tasks/get', { taskId });
    if (result.status === 'completed') {
      assert.match(textIn(result.result), /python \(User accepted|python \(/);
      break;
    }
    assert.match(result.status, /^(working|input_required)$/);
    if (result.status === 'input_required') {
      const [[key, request] = ['']] = Object.entries<Wire>(result.inputRequests);
      asked.push(request as Wire);
      await send('tasks/update', { taskId, inputResponses: { [key]: ADA } });
    }
    // What its server suggests; a task cannot be waited for in another way.
    await delay(pollIntervalMs / 4);
  }
  assert.deepEqual(
    asked.map(({ method }) => method),
    ['elicitation/create'],
  );
});

test('the official server of the older line is used over HTTP', PATIENCE, async (t) => {
  const fixture = await startFixtureServer(0, { legacyOnly: true });
  const gateway = await forwarding(t, {
    servers: { one: { type: 'http', url: fixture.url } },
    behind: [fixture],
  });
  const client = await agent(t, gateway.url());
  const { tools } = await client.listTools();
  const names = tools.map(({ name }) => name);
  assert.ok(names.includes('test_elicitation'), names.join());
  assert.match(
    textIn(await client.callTool({ name: 'test_elicitation', arguments: { message: 'Who?' } })),
    /Ada/,
  );
  assert.match(
    textIn(await client.callTool({ name: 'test_sampling', arguments: { prompt: 'x' } })),
    /sampled/,
  );
});
