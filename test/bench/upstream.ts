/**
 * The server behind the gateway, of both eras: 29 tools of some 25 kB, answered as prepared bytes, and an echo. No
 * sessions.
 */
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

const MODERN = '2026-07-28';
const HINTS = '"resultType":"complete","ttlMs":60000,"cacheScope":"public"';
const LIST = JSON.stringify({ tools: TOOLS });
const LISTS = { legacy: LIST, modern: `{${HINTS},${LIST.slice(1)}` };

interface Request {
  readonly id?: number;
  readonly method: string;
  readonly params?: {
    readonly protocolVersion?: string;
    readonly arguments?: { readonly text: string };
    readonly _meta?: Readonly<Record<string, unknown>>;
  };
}

function answer(body: string): string | undefined {
  const request = JSON.parse(body) as Request;
  const { id } = request;
  return id === undefined ? undefined : `{"jsonrpc":"2.0","id":${id},"result":${resultOf(request)}}`;
}

function resultOf({ method, params }: Request): string {
  const modern = params?._meta?.['io.modelcontextprotocol/protocolVersion'] === MODERN;
  if (method === 'tools/list') return LISTS[modern ? 'modern' : 'legacy'];
  if (method === 'server/discover')
    return `{${HINTS},"supportedVersions":["${MODERN}"],"capabilities":{"tools":{}}}`;
  if (method === 'tools/call') {
    const content = [{ type: 'text', text: params?.arguments?.text }];
    return JSON.stringify(modern ? { resultType: 'complete', content } : { content });
  }
  return JSON.stringify({
    protocolVersion: params?.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'bench', version: '1' },
  });
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
