import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { gate } from '../support/agent-gateway.js';

const PATIENCE = { timeout: 60_000 };
const root = fileURLToPath(new URL('../..', import.meta.url));
const fixture = [process.execPath, '--import', 'tsx', 'test/conformance/fixture-server.ts', '--stdio'];

type Mode = 'auto' | 'legacy' | { pin: string };

interface Official {
  readonly client: Client;
  /** The gateway, which the client has started. */
  readonly transport: StdioClientTransport;
  /** Resolves at the first word of a changed list of tools. */
  readonly changed: Promise<void>;
}

/** The official client, which starts a gateway in front of the official server, all on stdio. */
async function official(t: TestContext, mode: Mode): Promise<Official> {
  const client = new Client(
    { name: 'official', version: '1' },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode } },
  );
  const changed = gate();
  client.setRequestHandler('elicitation/create', ({ params }) => ({
    action: 'accept',
    content: params.message.includes('color') ? { color: 'blue' } : { name: 'Ada' },
  }));
  client.setNotificationHandler('notifications/tools/list_changed', () => changed.open());
  const args = ['--import', 'tsx', 'src/cli/main.ts', '--stdio', '--log-level', 'silent', '--', ...fixture];
  const transport = new StdioClientTransport({ command: process.execPath, args, cwd: root });
  t.after(() => client.close());
  await client.connect(transport);
  return { client, transport, changed: changed.opened };
}

const EXPECTED: readonly [Mode, string][] = [
  ['auto', '2026-07-28'],
  ['legacy', '2025-11-25'],
];

for (const [mode, revision] of EXPECTED)
  test(`the official client speaks ${revision} if it is to choose by ${mode}`, PATIENCE, async (t) => {
    const { client } = await official(t, mode as Mode);
    assert.equal(client.getNegotiatedProtocolVersion(), revision);
    const { content } = await client.callTool({ name: 'test_input_required_result_elicitation' });
    assert.deepEqual(content, [{ type: 'text', text: 'Hello, Ada!' }]);
  });

test('the official client gets progress, logs, answers to its questions and errors', PATIENCE, async (t) => {
  const { client } = await official(t, { pin: '2026-07-28' });
  const steps: number[] = [];
  await client.callTool(
    { name: 'test_tool_with_progress' },
    { onprogress: ({ progress }) => void steps.push(progress) },
  );
  // With the answer the client forgets the call, and a step that comes in one piece with it too.
  assert.deepEqual(steps.slice(0, 2), [0, 50]);
  const logged: unknown[] = [];
  client.setNotificationHandler('notifications/message', ({ params }) => void logged.push(params.data));
  const logLevel = (level: string) => ({ 'io.modelcontextprotocol/logLevel': level });
  for (const level of ['warning', 'info'])
    await client.callTool({ name: 'test_tool_with_logging', _meta: logLevel(level) });
  const texts = ['Tool execution started', 'Tool processing data', 'Tool execution completed'];
  assert.deepEqual(logged, texts);
  const asked = await client.callTool({ name: 'test_input_required_result_multi_round' });
  assert.deepEqual(asked.content, [{ type: 'text', text: 'Ada likes blue' }]);
  await assert.rejects(client.callTool({ name: 'test_missing_capability' }), { code: -32021 });
});

test('the official client hears of changes until the gateway ends, and that it does', PATIENCE, async (t) => {
  const { client, transport, changed } = await official(t, { pin: '2026-07-28' });
  const names = async () => (await client.listTools()).tools.map(({ name }) => name);
  const subscription = await client.listen({ toolsListChanged: true });
  const other = await client.listen({ promptsListChanged: true });
  await other.close();
  const before = await names();
  await client.callTool({ name: 'test_trigger_tool_change' });
  await changed;
  assert.notDeepEqual(await names(), before);
  const { pid } = transport;
  assert.ok(pid);
  process.kill(pid, 'SIGTERM');
  assert.equal(await subscription.closed, 'graceful');
});

test('the official client takes a call back', PATIENCE, async (t) => {
  const { client } = await official(t, { pin: '2026-07-28' });
  const patience = new AbortController();
  const call = client.callTool(
    { name: 'test_tool_with_progress' },
    { signal: patience.signal, onprogress: () => patience.abort() },
  );
  await assert.rejects(call);
  const { content } = await client.callTool({ name: 'test_simple_text' });
  assert.equal((content as unknown[]).length, 1);
});
