import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { Link } from '../../src/upstream/link.js';
import { notice, RemoteOwner, refusalOf, request } from '../support/remote-link.js';

const hello = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
};

function toolServer(): McpServer {
  const server = new McpServer({ name: 'official', version: '1' }, { capabilities: { logging: {} } });
  server.registerTool('count', { description: 'Logs, then answers' }, async (extra) => {
    await extra.sendNotification({
      method: 'notifications/message',
      params: { level: 'info', data: 'counting' },
    });
    return { content: [{ type: 'text', text: 'one' }] };
  });
  return server;
}

async function listen(t: TestContext, listener: RequestListener): Promise<string> {
  const http = createServer(listener);
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  t.after(() => {
    http.close();
    http.closeAllConnections();
  });
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
}

async function handshake(link: Link): Promise<void> {
  await link.send(request(0, 'initialize', hello));
  await link.send(notice('notifications/initialized'));
  link.established('2025-11-25');
}

test('a session with the official Streamable HTTP server: call, notifications on both streams, loss, end', async (t) => {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  let server: McpServer | undefined;
  const origin = await listen(t, async (req, res) => {
    const known = sessions.get(String(req.headers['mcp-session-id']));
    if (known) return void known.handleRequest(req, res);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    server = toolServer();
    await server.connect(transport as Transport);
    await transport.handleRequest(req, res);
  });
  const owner = new RemoteOwner(t);
  const link = await owner.open(`${origin}/mcp`, { transport: 'auto' });
  await handshake(link);
  await link.send(request(1, 'tools/call', { name: 'count', arguments: {} }));
  assert.deepEqual(
    owner.delivered
      .slice(1)
      .map(({ json, origin: from }) => [json.method ?? json.result.content[0].text, from]),
    [
      ['notifications/message', '1'],
      ['one', '1'],
    ],
  );
  server?.registerTool('late', {}, () => ({ content: [] }));
  const { json, origin: from } = await owner.message(4);
  assert.equal(json.method, 'notifications/tools/list_changed');
  assert.equal(from, undefined);
  await link.close();
  assert.equal(sessions.size, 0);

  const second = await owner.open(`${origin}/mcp`);
  await handshake(second);
  await [...sessions.values()][0]?.close();
  sessions.clear();
  assert.equal((await refusalOf(second.send(request(2, 'tools/list')))).code, 'session_lost');
});

test('a session with the official HTTP+SSE server, found by its refusal of the POST', async (t) => {
  const sessions = new Map<string, SSEServerTransport>();
  const origin = await listen(t, async (req, res) => {
    const url = new URL(req.url ?? '', 'http://x');
    if (req.method === 'GET' && url.pathname === '/sse') {
      const transport = new SSEServerTransport('/messages', res);
      sessions.set(transport.sessionId, transport);
      return toolServer().connect(transport as Transport);
    }
    const session = sessions.get(url.searchParams.get('sessionId') ?? '');
    if (session) return session.handlePostMessage(req, res);
    res.writeHead(404).end();
  });
  const owner = new RemoteOwner(t);
  const link = await owner.open(`${origin}/sse`, { transport: 'auto' });
  await handshake(link);
  await owner.message(1);
  assert.equal(link.kind, 'sse');
  await link.send(request(1, 'tools/call', { name: 'count', arguments: {} }));
  await owner.message(3);
  assert.deepEqual(
    owner.delivered
      .slice(1)
      .map(({ json, origin: from }) => [json.method ?? json.result.content[0].text, from]),
    [
      ['notifications/message', undefined],
      ['one', undefined],
    ],
  );
  await link.close();
});
