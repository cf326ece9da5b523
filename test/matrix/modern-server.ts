/**
 * A server of 2026-07-28 alone on the official SDK's second line: it refuses `initialize`.
 *
 *   node --import tsx test/matrix/modern-server.ts   over stdin and stdout
 */
import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type NodeIncomingMessageLike, toNodeHandler } from '@modelcontextprotocol/node';
import {
  createMcpHandler,
  InMemoryServerEventBus,
  inputRequired,
  inputResponse,
  McpServer,
  ProtocolError,
  type ServerContext,
  type ServerEventBus,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import {
  COMPLETION,
  CONTENTS,
  definition,
  FAILURE,
  FORM,
  PAGE,
  PROMPT,
  PROMPT_RESULT,
  RESOURCE,
  SAMPLE,
  TOOLS,
  text,
  WATCHED,
} from './offer.js';
import type { MatrixServer } from './servers.js';

/** The SDKs lose progress that comes in one piece with the answer. */
const STEP_MS = 20;

/** What outlives one request. */
interface World {
  aborted: number;
  extra: boolean;
  readonly bus: ServerEventBus;
}

function newWorld(): World {
  return { aborted: 0, extra: false, bus: new InMemoryServerEventBus() };
}

function createModernServer(world: World): McpServer {
  const mcp = new McpServer(
    { name: 'modern', version: '1' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: {},
        resources: { subscribe: true },
        logging: {},
        completions: {},
      },
      cacheHints: { 'tools/list': { ttlMs: 60_000, cacheScope: 'public' } },
    },
  );
  const { server } = mcp;
  server.setRequestHandler('tools/list', () => ({
    tools: [...TOOLS, ...(world.extra ? ['extra'] : [])].map(definition),
  }));
  server.setRequestHandler('prompts/list', () => ({ prompts: [{ name: PROMPT }] }));
  server.setRequestHandler('prompts/get', () => PROMPT_RESULT);
  server.setRequestHandler('resources/list', () => ({ resources: [RESOURCE] }));
  server.setRequestHandler('resources/read', () => CONTENTS);
  server.setRequestHandler('completion/complete', () => COMPLETION);
  server.setRequestHandler('tools/call', ({ params }, ctx) => callTool(world, params, ctx));
  return mcp;
}

async function callTool(
  world: World,
  { name, arguments: given }: { name: string; arguments?: Record<string, unknown> | undefined },
  { mcpReq }: ServerContext,
) {
  const answer = inputResponse(mcpReq.inputResponses, 'question');
  const token = mcpReq._meta?.progressToken;
  switch (name) {
    case 'echo':
      return text(JSON.stringify(given ?? {}));
    case 'progress':
      for (const progress of token === undefined ? [] : [1, 2, 3])
        await mcpReq.notify({
          method: 'notifications/progress',
          params: { progressToken: token as string, progress, total: 3 },
        });
      await delay(STEP_MS);
      return text('done');
    case 'wait':
      await once(mcpReq.signal, 'abort');
      world.aborted++;
      return text('aborted');
    case 'aborted':
      return text(String(world.aborted));
    case 'log':
      await mcpReq.log('warning', 'careful');
      return text('logged');
    case 'change':
      world.extra = !world.extra;
      world.bus.publish({ kind: 'tools_list_changed' });
      return text('changed');
    case 'touch':
      world.bus.publish({ kind: 'resource_updated', uri: WATCHED });
      return text('touched');
    case 'ask-form':
      if (answer.kind === 'elicit') return text(JSON.stringify(answer.content));
      return inputRequired({ inputRequests: { question: inputRequired.elicit(FORM) }, requestState: 's1' });
    case 'ask-url':
      if (answer.kind === 'elicit') return text(answer.action);
      return inputRequired({ inputRequests: { question: inputRequired.elicitUrl(PAGE) } });
    case 'sample':
      if (answer.kind === 'sampling') {
        const [block] = [answer.result.content].flat();
        return text(block?.type === 'text' ? block.text : 'none');
      }
      return inputRequired({ inputRequests: { question: inputRequired.createMessage(SAMPLE) } });
    case 'roots':
      if (answer.kind === 'roots') return text(JSON.stringify(answer.roots));
      return inputRequired({ inputRequests: { question: inputRequired.listRoots() } });
    default:
      throw new ProtocolError(FAILURE.code, FAILURE.message, FAILURE.data);
  }
}

/** Serves HTTP on a free port. */
export async function startModernServer(): Promise<MatrixServer> {
  const world = newWorld();
  const modern = createMcpHandler(() => createModernServer(world), { legacy: 'reject', bus: world.bus });
  const handle = toNodeHandler({ fetch: (request) => modern.fetch(request) });
  const listener = createServer((req, res) => void handle(req as NodeIncomingMessageLike, res));
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}/mcp`,
    async close() {
      await modern.close();
      listener.close();
      listener.closeAllConnections();
    },
  };
}

/** Over a pipe the SDK passes changes on by notifications of the one server. */
function serveOnPipe(): void {
  const world = newWorld();
  serveStdio(
    () => {
      const mcp = createModernServer(world);
      mcp.server.onclose = world.bus.subscribe((event) => {
        if (event.kind === 'tools_list_changed') void mcp.server.sendToolListChanged();
        if (event.kind === 'resource_updated') void mcp.server.sendResourceUpdated({ uri: event.uri });
      });
      return mcp;
    },
    { legacy: 'reject' },
  );
}

const [, script] = process.argv;
if (script && realpathSync(script) === fileURLToPath(import.meta.url)) serveOnPipe();
