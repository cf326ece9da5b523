import assert from 'node:assert/strict';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { type CallToolResult, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { type GatewayEvent, parseConfig, startGateway } from '../../src/index.js';
import { McpServer } from '../support/mcp-server.js';
import { RawAgent } from '../support/raw-agent.js';

const FILESYSTEM = createRequire(import.meta.url).resolve(
  '@modelcontextprotocol/server-filesystem/dist/index.js',
);

async function folder(t: TestContext): Promise<string> {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'sidegate-roots-')));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

async function open(t: TestContext, mcpServers: object) {
  const events: GatewayEvent[] = [];
  const { config } = parseConfig({ port: 0, mcpServers });
  const gateway = await startGateway(config, { emit: (event) => events.push(event) });
  t.after(() => gateway.close());
  return { gateway, events };
}

/** An official client that works in one folder; `asked` settles when it was asked for its roots. */
async function clientIn(t: TestContext, url: string, path: string) {
  const client = new Client(
    { name: 'roots', version: '1' },
    { capabilities: { roots: { listChanged: true } } },
  );
  const asked = new Promise<void>((resolve) => {
    client.setRequestHandler(ListRootsRequestSchema, () => {
      // The answer leaves before whoever waits goes on.
      setImmediate(resolve);
      return { roots: [{ uri: pathToFileURL(path).href, name: 'work' }] };
    });
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  t.after(() => client.close());
  const allowed = async (): Promise<string> => {
    const result = (await client.callTool({
      name: 'list_allowed_directories',
      arguments: {},
    })) as CallToolResult;
    return JSON.stringify(result.content);
  };
  return { client, asked, allowed };
}

test('a server that asks for roots is given those of each agent, and mixes none', async (t) => {
  const [start, a, b] = [await folder(t), await folder(t), await folder(t)];
  const { gateway, events } = await open(t, {
    files: { command: process.execPath, args: [FILESYSTEM, start] },
  });
  const first = await clientIn(t, `${gateway.url}/mcp`, a);
  await first.asked;
  const second = await clientIn(t, `${gateway.url}/mcp`, b);
  await second.asked;
  while (!(await second.allowed()).includes(b)) await new Promise(setImmediate);
  assert.ok((await first.allowed()).includes(a));
  assert.ok(!(await first.allowed()).includes(b));
  assert.ok(!(await second.allowed()).includes(a));
  assert.equal(gateway.poolSize, 2);
  assert.equal(events.filter((event) => event.type === 'warning').length, 1);
});

test('an agent that vanished leaves its roots to nobody', async (t) => {
  const [start, a, b] = [await folder(t), await folder(t), await folder(t)];
  const { gateway } = await open(t, { files: { command: process.execPath, args: [FILESYSTEM, start] } });
  const first = await clientIn(t, `${gateway.url}/mcp`, a);
  await first.asked;
  await first.client.close();
  const second = await clientIn(t, `${gateway.url}/mcp`, b);
  await second.asked;
  assert.ok(!(await second.allowed()).includes(a));
});

test('a server that asks one of several agents is refused once, and told apart from then on', async (t) => {
  const server = await McpServer.start();
  t.after(() => server.close());
  const { gateway } = await open(t, { one: { url: server.url } });
  const capabilities = { sampling: {} };
  const answerAs = (model: string) => ({ capabilities, onAsk: () => ({ model }) });
  const a = await RawAgent.connect(`${gateway.url}/mcp`, answerAs('a'));
  const b = await RawAgent.connect(`${gateway.url}/mcp`, answerAs('b'));
  await a.listen();
  await b.listen();
  await server.until(() => server.openStreams === 1);
  const refused = await server.askOnStream('sampling/createMessage', { messages: [] });
  assert.equal(refused.error?.code, -32603);
  await a.request('tools/list', undefined);
  server.on['tools/call'] = () => '{"content":[]}';
  await a.call('x');
  await b.call('x');
  await server.until(() => server.initialized.length === 3);
  assert.equal(server.count('tools/call'), 2);
});

test('agents that declare nothing go on sharing the connection of a server that asks', async (t) => {
  const [start, a] = [await folder(t), await folder(t)];
  const { gateway } = await open(t, { files: { command: process.execPath, args: [FILESYSTEM, start] } });
  await (await clientIn(t, `${gateway.url}/mcp`, a)).asked;
  for (const _ of [1, 2]) {
    const plain = await RawAgent.connect(`${gateway.url}/mcp`);
    assert.ok((await plain.call('list_allowed_directories')).text.includes(start));
  }
  assert.equal(gateway.poolSize, 2);
});
