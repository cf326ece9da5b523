import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { callsFor } from './arguments.js';

/** Lists and calls whatever the scenario's server has. */
export async function runLegacy(scenario: string, url: string): Promise<void> {
  const asks = scenario.startsWith('elicitation');
  const client = new Client(
    { name: 'sidegate-conformance', version: '1' },
    { capabilities: asks ? { elicitation: { form: { applyDefaults: true } } } : {} },
  );
  if (asks) client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept' as const, content: {} }));
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport as Parameters<Client['connect']>[0]);
  try {
    const { tools } = await client.listTools();
    for (const call of scenario === 'initialize' ? [] : callsFor(tools)) await client.callTool(call);
  } finally {
    await client.close();
  }
}
