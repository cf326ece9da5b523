import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type NodeIncomingMessageLike, toNodeHandler } from '@modelcontextprotocol/node';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod';
import { startGateway } from '../../src/index.js';

/** Tools whose structured results are of every kind, by name: their schema, and what they answer. */
const TREE: z.ZodType = z.lazy(() => z.union([z.number(), z.array(TREE)]));
const OFFER: Readonly<Record<string, readonly [z.ZodType, unknown]>> = {
  object: [z.object({ n: z.number() }), { n: 1 }],
  array: [z.array(z.object({ n: z.number() })), [{ n: 1 }, { n: 2 }]],
  text: [z.string(), 'x'],
  number: [z.number(), 7],
  nothing: [z.null(), null],
  union: [z.union([z.object({ a: z.string() }), z.object({ b: z.number() })]), { b: 2 }],
  optional: [z.object({ a: z.string() }).nullable(), { a: 'x' }],
  tree: [TREE, [1, [2, [3]]]],
};

function createOffer(): McpServer {
  const server = new McpServer({ name: 'official', version: '1' });
  for (const [name, [outputSchema, structuredContent]] of Object.entries(OFFER))
    server.registerTool(name, { outputSchema }, () => ({
      content: [{ type: 'text', text: JSON.stringify(structuredContent) }],
      structuredContent: structuredContent as Record<string, unknown>,
    }));
  return server;
}

/** URL of the official server: of 2026-07-28 alone, or with the official way to serve older agents. */
async function official(t: TestContext, legacy: 'reject' | 'stateless'): Promise<string> {
  const handler = createMcpHandler(createOffer, { legacy });
  const handle = toNodeHandler({ fetch: (request) => handler.fetch(request) });
  const listener = createServer((req, res) => void handle(req as NodeIncomingMessageLike, res));
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  t.after(async () => {
    await handler.close();
    listener.close();
    listener.closeAllConnections();
  });
  return `http://127.0.0.1:${(listener.address() as AddressInfo).port}/mcp`;
}

async function agent(t: TestContext, url: string): Promise<Client> {
  const client = new Client({ name: 'old', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)) as Parameters<Client['connect']>[0]);
  t.after(() => client.close());
  return client;
}

async function gateway(t: TestContext, url: string): Promise<string> {
  const started = await startGateway({ mcpServers: { one: { type: 'http', url } }, port: 0 });
  t.after(() => started.close());
  return `${started.url}/mcp`;
}

test('tools and their structured results are those of the official way to serve older agents', async (t) => {
  const direct = await agent(t, await official(t, 'stateless'));
  const bridged = await agent(t, await gateway(t, await official(t, 'reject')));
  assert.deepEqual((await bridged.listTools()).tools, (await direct.listTools()).tools);
  for (const name of Object.keys(OFFER)) {
    const [ours, theirs] = [await bridged.callTool({ name }), await direct.callTool({ name })];
    const { structuredContent, content } = theirs;
    assert.deepEqual([ours.structuredContent, ours.content], [structuredContent, content], name);
  }
});

test('a list from the cache and a call of another agent agree', async (t) => {
  const url = await gateway(t, await official(t, 'reject'));
  for (const _ of ['miss', 'hit']) {
    const client = await agent(t, url);
    const { tools } = await client.listTools();
    assert.equal(tools.length, Object.keys(OFFER).length);
    // The client refuses what its schema does not allow.
    for (const { name, outputSchema } of tools) {
      const value = OFFER[name]?.[1];
      const wraps = outputSchema?.properties?.['result'] !== undefined;
      assert.deepEqual(
        (await client.callTool({ name })).structuredContent,
        wraps ? { result: value } : value,
      );
    }
  }
});
