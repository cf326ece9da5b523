/**
 * A server of the `initialize` era on the official SDK's first line.
 *
 *   node --import tsx test/matrix/legacy-server.ts   over stdin and stdout
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
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

/** What outlives one session. */
interface World {
  aborted: number;
  extra: boolean;
}

function createLegacyServer(world: World): Server {
  const server = new Server(
    { name: 'legacy', version: '1' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: {},
        resources: { subscribe: true },
        logging: {},
        completions: {},
      },
    },
  );
  const watched = new Set<string>();
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [...TOOLS, ...(world.extra ? ['extra'] : [])].map(definition),
  }));
  server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: [{ name: PROMPT }] }));
  server.setRequestHandler(GetPromptRequestSchema, () => PROMPT_RESULT);
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [RESOURCE] }));
  server.setRequestHandler(ReadResourceRequestSchema, () => CONTENTS);
  server.setRequestHandler(CompleteRequestSchema, () => COMPLETION);
  server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    watched.add(params.uri);
    return {};
  });
  server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    watched.delete(params.uri);
    return {};
  });
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const token = extra._meta?.progressToken;
    const related = { relatedRequestId: extra.requestId };
    switch (params.name) {
      case 'echo':
        return text(JSON.stringify(params.arguments ?? {}));
      case 'progress':
        for (const progress of token === undefined ? [] : [1, 2, 3])
          await extra.sendNotification({
            method: 'notifications/progress',
            params: { progressToken: token as string, progress, total: 3 },
          });
        await delay(STEP_MS);
        return text('done');
      case 'wait':
        await once(extra.signal, 'abort');
        world.aborted++;
        return text('aborted');
      case 'aborted':
        return text(String(world.aborted));
      case 'log':
        await extra.sendNotification({
          method: 'notifications/message',
          params: { level: 'warning', data: 'careful' },
        });
        return text('logged');
      case 'change':
        world.extra = !world.extra;
        await server.sendToolListChanged();
        return text('changed');
      case 'touch':
        if (watched.has(WATCHED)) await server.sendResourceUpdated({ uri: WATCHED });
        return text('touched');
      case 'ask-form':
        return text(JSON.stringify((await server.elicitInput({ mode: 'form', ...FORM }, related)).content));
      case 'ask-url': {
        const asked = { mode: 'url' as const, elicitationId: randomUUID(), ...PAGE };
        return text((await server.elicitInput(asked, related)).action);
      }
      case 'sample': {
        const { content } = await server.createMessage(SAMPLE, related);
        return text('text' in content ? content.text : 'none');
      }
      case 'roots':
        return text(JSON.stringify((await server.listRoots(undefined, related)).roots));
      default:
        throw Object.assign(new McpError(FAILURE.code, ''), {
          message: FAILURE.message,
          data: FAILURE.data,
        });
    }
  });
  return server;
}

/** Serves HTTP on a free port, a server for each session. */
export async function startLegacyServer(): Promise<MatrixServer> {
  const world: World = { aborted: 0, extra: false };
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const begin = async () => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await createLegacyServer(world).connect(transport);
    return transport;
  };
  const serve = async (req: IncomingMessage, res: ServerResponse) => {
    const id = req.headers['mcp-session-id'];
    const found = typeof id === 'string' ? sessions.get(id) : await begin();
    if (found) await found.handleRequest(req, res);
    else res.writeHead(404).end();
  };
  const listener = createServer((req, res) => void serve(req, res));
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}/mcp`,
    async close() {
      listener.close();
      listener.closeAllConnections();
      await Promise.all([...sessions.values()].map((session) => session.close()));
    },
  };
}

const [, script] = process.argv;
if (script && realpathSync(script) === fileURLToPath(import.meta.url))
  await createLegacyServer({ aborted: 0, extra: false }).connect(new StdioServerTransport());
