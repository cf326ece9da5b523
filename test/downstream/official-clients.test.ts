import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { ServerConfig } from '../../src/config/types.js';
import { gate, serverConfig, toolOf, withGateway } from '../support/agent-gateway.js';
import type { ServerCall } from '../support/mcp-server.js';

const ECHO = { name: 'echo', inputSchema: { type: 'object' } };

function scripted() {
  const hung = gate();
  /** Progress has reached the client: only then is the call answered. */
  const seen = gate();
  const call = async (request: ServerCall): Promise<string> => {
    const { message } = request;
    const token = message.params._meta?.progressToken;
    switch (toolOf(message)) {
      case 'log':
        request.notify('notifications/message', { level: 'info', data: 'working' });
        break;
      case 'progress':
        request.notify('notifications/progress', { progressToken: token, progress: 1, total: 2 });
        await seen.opened;
        break;
      case 'ask': {
        const { result } = await request.ask('elicitation/create', {
          message: 'Name?',
          requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
        });
        return JSON.stringify({ content: [{ type: 'text', text: result.content.name }] });
      }
      case 'hang':
        hung.open();
        await new Promise(() => {});
    }
    return JSON.stringify({ content: [{ type: 'text', text: toolOf(message) }] });
  };
  const on = { ping: () => '{}', 'tools/list': () => JSON.stringify({ tools: [ECHO] }), 'tools/call': call };
  return { hung, seen, server: { on } };
}

const transports: Readonly<Record<string, (base: string) => Transport>> = {
  'Streamable HTTP': (base) => new HttpV1(new URL(`${base}/mcp`)) as Transport,
  'HTTP+SSE': (base) => new SSEClientTransport(new URL(`${base}/sse`)),
};

for (const [name, transport] of Object.entries(transports))
  test(`the official client of the first line works over ${name}`, async () => {
    const { hung, seen, server } = scripted();
    await withGateway({ server }, async ({ gateway, server: upstream }) => {
      const client = new ClientV1({ name: 'v1', version: '1' }, { capabilities: { elicitation: {} } });
      const logged: unknown[] = [];
      const changed = gate();
      client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }));
      client.setNotificationHandler(
        LoggingMessageNotificationSchema,
        ({ params }) => void logged.push(params.data),
      );
      client.setNotificationHandler(ToolListChangedNotificationSchema, () => changed.open());
      await client.connect(transport(gateway.url));
      assert.deepEqual((await client.listTools()).tools, [ECHO]);
      await client.ping();
      await client.callTool({ name: 'log' });
      assert.deepEqual(logged, ['working']);
      const progress: unknown[] = [];
      const onprogress = (step: unknown) => {
        progress.push(step);
        seen.open();
      };
      await client.callTool({ name: 'progress' }, undefined, { onprogress });
      assert.deepEqual(progress, [{ progress: 1, total: 2 }]);
      for (let times = 0; times < 2; times++)
        assert.deepEqual((await client.callTool({ name: 'ask' })).content, [{ type: 'text', text: 'Ada' }]);
      await assert.rejects(client.listPrompts(), { code: -32601 });
      const aborter = new AbortController();
      const hanging = client.callTool({ name: 'hang' }, undefined, { signal: aborter.signal });
      await hung.opened;
      aborter.abort('enough');
      await assert.rejects(hanging);
      await upstream.until(() =>
        upstream.notifications.some(({ method }) => method === 'notifications/cancelled'),
      );
      await upstream.until(() => upstream.openStreams > 0);
      upstream.broadcast('notifications/tools/list_changed');
      await changed.opened;
      await client.close();
    })();
  });

test('the official client of the second line works in the era of initialize', async () => {
  const { server } = scripted();
  await withGateway({ server }, async ({ gateway, server: upstream }) => {
    const client = new ClientV2(
      { name: 'v2', version: '1' },
      { capabilities: { elicitation: { form: {} } } },
    );
    const logged: unknown[] = [];
    const changed = gate();
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }));
    client.setNotificationHandler('notifications/message', ({ params }) => void logged.push(params.data));
    client.setNotificationHandler('notifications/tools/list_changed', () => changed.open());
    const transport = new HttpV2(new URL(`${gateway.url}/mcp`));
    await client.connect(transport);
    assert.deepEqual((await client.listTools()).tools, [ECHO]);
    await client.callTool({ name: 'log' });
    assert.deepEqual(logged, ['working']);
    assert.deepEqual((await client.callTool({ name: 'ask' })).content, [{ type: 'text', text: 'Ada' }]);
    await upstream.until(() => upstream.openStreams > 0);
    upstream.broadcast('notifications/tools/list_changed');
    await changed.opened;
    await transport.terminateSession();
    assert.equal(gateway.sessions, 0);
    await client.close();
  })();
});

test('fifty official clients at once never get the answer of another', async () => {
  const { server } = scripted();
  await withGateway({ server }, async ({ gateway }) => {
    const clients = await Promise.all(
      Array.from({ length: 50 }, async (_, n) => {
        const client = new ClientV1({ name: `client-${n}`, version: '1' });
        await client.connect(new HttpV1(new URL(`${gateway.url}/mcp`)) as Transport);
        return client;
      }),
    );
    const call = async (client: ClientV1, n: number) => {
      for (let time = 0; time < 20; time++) {
        const name = `mark-${n}-${time}`;
        assert.deepEqual((await client.callTool({ name })).content, [{ type: 'text', text: name }]);
      }
    };
    await Promise.all(clients.map(call));
    await Promise.all(clients.map((client) => client.close()));
  })();
});

test('a client of the first line and the reference server work through the gateway', async () => {
  const script = createRequire(import.meta.url).resolve(
    '@modelcontextprotocol/server-everything/dist/index.js',
  );
  const target: ServerConfig['target'] = {
    kind: 'stdio',
    command: process.execPath,
    args: [script, 'stdio'],
    env: {},
    cwd: undefined,
  };
  const servers = [{ ...serverConfig('everything', ''), target }];
  await withGateway({ config: { servers } }, async ({ gateway }) => {
    const client = new ClientV1({ name: 'v1', version: '1' });
    await client.connect(new HttpV1(new URL(`${gateway.url}/servers/everything/mcp`)) as Transport);
    const { tools } = await client.listTools();
    assert.ok(tools.some((tool) => tool.name === 'echo'));
    const echoed = await client.callTool({ name: 'echo', arguments: { message: 'through' } });
    assert.match(JSON.stringify(echoed.content), /through/);
    assert.ok((await client.listResources()).resources.length > 0);
    assert.ok((await client.listPrompts()).prompts.length > 0);
    await client.close();
  })();
});
