import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { callsFor } from './arguments.js';

/** Lists and calls whatever the scenario's server has, and answers what it asks. */
export async function runModern(scenario: string, url: string): Promise<void> {
  const client = new Client(
    { name: 'sidegate-conformance', version: '1' },
    {
      capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
      versionNegotiation: { mode: 'auto' },
    },
  );
  client.setRequestHandler('elicitation/create', () => ({
    action: 'accept' as const,
    content: { confirmed: true, name: 'Ada' },
  }));
  client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///home/ada' }] }));
  client.setRequestHandler('sampling/createMessage', () => ({
    role: 'assistant' as const,
    content: { type: 'text' as const, text: 'Paris' },
    model: 'none',
  }));
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  try {
    await useAll(client, scenario);
  } finally {
    await client.close();
  }
}

async function useAll(client: Client, scenario: string): Promise<void> {
  const { tools } = await client.listTools();
  for (const call of callsFor(tools))
    await client.callTool(call).catch((error: unknown) => complain(scenario, call.name, error));
  if (!scenario.startsWith('http-standard')) return;
  const { resources } = await client.listResources();
  for (const { uri } of resources) await client.readResource({ uri });
  const { prompts } = await client.listPrompts();
  for (const { name } of prompts) await client.getPrompt({ name });
}

/** A refused call is for the referee to judge, not for the client. */
function complain(scenario: string, tool: string, error: unknown): void {
  console.error(`${scenario}: ${tool}: ${error instanceof Error ? error.message : String(error)}`);
}
