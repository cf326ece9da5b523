/** The server behind the gateway: 29 tools of some 25 kB, answered as prepared bytes, and an echo. No sessions. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const TOOLS = Array.from({ length: 29 }, (_, index) => ({
  name: `tool_${index}`,
  title: `Tool number ${index}`,
  description: 'Looks something up and tells what it found, page by page. '.repeat(5),
  inputSchema: {
    type: 'object',
    properties: Object.fromEntries(
      ['query', 'owner', 'repository', 'page', 'perPage'].map((name) => [
        name,
        {
          type: 'string',
          description: `The ${name} to look for, as it is written in the address of the page`,
        },
      ]),
    ),
    required: ['query'],
  },
  annotations: { readOnlyHint: true },
}));

const LIST = JSON.stringify({ tools: TOOLS });

function answer(body: string): string | undefined {
  const { id, method, params } = JSON.parse(body) as {
    id?: number;
    method: string;
    params?: { protocolVersion?: string; arguments?: { text: string } };
  };
  if (id === undefined) return undefined;
  const result = () => {
    if (method === 'tools/list') return LIST;
    if (method === 'tools/call')
      return JSON.stringify({ content: [{ type: 'text', text: params?.arguments?.text }] });
    const serverInfo = { name: 'bench', version: '1' };
    return JSON.stringify({
      protocolVersion: params?.protocolVersion,
      capabilities: { tools: {} },
      serverInfo,
    });
  };
  return `{"jsonrpc":"2.0","id":${id},"result":${result()}}`;
}

const server = createServer((request, response) => {
  if (request.method !== 'POST') return void response.writeHead(405).end();
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const text = answer(Buffer.concat(chunks).toString());
    if (text === undefined) return void response.writeHead(202).end();
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    });
    response.end(text);
  });
});
server.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
});
