import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { startFixtureServer } from './fixture-server.js';

const script = fileURLToPath(new URL('./fixture-server.ts', import.meta.url));

const dual = await startFixtureServer();
const legacyOnly = await startFixtureServer(0, { legacyOnly: true });
after(() => Promise.all([dual.close(), legacyOnly.close()]));

function overHttp(url: string) {
  return new StreamableHTTPClientTransport(new URL(url));
}

function overStdio(...args: string[]) {
  return new StdioClientTransport({
    command: process.execPath,
    args: ['--import', 'tsx', script, '--stdio', ...args],
  });
}

/** A client that takes the newest revision it is offered, and answers every form with one name. */
function newClient(mode: 'auto' | 'legacy'): Client {
  const client = new Client(
    { name: 'fixture-test', version: '1.0.0' },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode } },
  );
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Alice' } }));
  return client;
}

async function toolNames(client: Client): Promise<string[]> {
  return (await client.listTools()).tools.map((tool) => tool.name);
}

const cases = [
  { name: 'HTTP, modern', connect: () => overHttp(dual.url), mode: 'auto', revision: '2026-07-28' },
  { name: 'HTTP, legacy', connect: () => overHttp(dual.url), mode: 'legacy', revision: '2025-11-25' },
  {
    name: 'HTTP, legacy only',
    connect: () => overHttp(legacyOnly.url),
    mode: 'auto',
    revision: '2025-11-25',
  },
  { name: 'stdio, modern', connect: () => overStdio(), mode: 'auto', revision: '2026-07-28' },
  { name: 'stdio, legacy', connect: () => overStdio(), mode: 'legacy', revision: '2025-11-25' },
  {
    name: 'stdio, legacy only',
    connect: () => overStdio('--legacy-only'),
    mode: 'auto',
    revision: '2025-11-25',
  },
] as const;

for (const { name, connect, mode, revision } of cases) {
  test(`over ${name} it speaks ${revision}, asks the user and tells of a changed list`, {
    timeout: 30_000,
  }, async (t) => {
    const client = newClient(mode);
    t.after(() => client.close());
    const changed = new Promise<void>((resolve) => {
      client.setNotificationHandler('notifications/tools/list_changed', () => resolve());
    });
    await client.connect(connect());
    assert.equal(client.getNegotiatedProtocolVersion(), revision);

    const greeting = await client.callTool({ name: 'test_input_required_result_elicitation' });
    assert.deepEqual(greeting.content, [{ type: 'text', text: 'Hello, Alice!' }]);

    if (revision === '2026-07-28') await client.listen({ toolsListChanged: true });
    const before = await toolNames(client);
    await client.callTool({ name: 'test_trigger_tool_change' });
    await changed;
    assert.notDeepEqual(await toolNames(client), before);
  });
}
