import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type StdioGateway, serveAgentOnStdio } from '../../src/app/gateway.js';
import { parseConfig } from '../../src/config/load.js';
import type { GatewayConfig } from '../../src/config/types.js';
import {
  callText,
  codeOf,
  gate,
  gatewayConfig,
  initializeText,
  notificationText,
  serverConfig,
  toolOf,
} from '../support/agent-gateway.js';
import { FakeClock } from '../support/fake-clock.js';
import { McpServer, type ServerCall, type Wire } from '../support/mcp-server.js';
import { settle } from '../support/pool-bench.js';
import { startWitness } from '../support/witness.js';

const STUBBORN = fileURLToPath(new URL('../support/stubborn-server.mjs', import.meta.url));

/** One agent on a pair of streams. */
class PipeAgent {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly lines: string[] = [];
  #rest = '';
  #look = () => {};

  constructor() {
    this.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (this.#rest + chunk).split('\n');
      this.#rest = lines.pop() ?? '';
      this.lines.push(...lines);
      this.#look();
    });
  }

  say(...lines: string[]): void {
    this.stdin.write(lines.map((line) => `${line}\n`).join(''));
  }

  async next(): Promise<Wire> {
    while (this.lines.length === 0) await new Promise<void>((resolve) => (this.#look = resolve));
    return JSON.parse(this.lines.shift() ?? '') as Wire;
  }

  async initialize(options: { revision?: string; capabilities?: object } = {}): Promise<void> {
    this.say(initializeText(options, '"init"'), notificationText('notifications/initialized'));
    assert.equal((await this.next()).id, 'init');
  }
}

interface PipeBench {
  readonly agent: PipeAgent;
  readonly gateway: StdioGateway;
  readonly server: McpServer;
  readonly clock: FakeClock;
  readonly release: () => void;
}

function withPipe(
  test: (bench: PipeBench) => Promise<void>,
  config: Partial<GatewayConfig> = {},
): () => Promise<void> {
  return async () => {
    const slow = gate();
    const handler = async (call: ServerCall) => {
      const name = toolOf(call.message);
      if (name === 'slow') await slow.opened;
      if (name === 'log') call.notify('notifications/message', { level: 'info', data: 'first' });
      if (name === 'ask')
        return JSON.stringify({ content: [], structuredContent: (await call.ask('roots/list')).result });
      return `{"content":[],\n"name":${JSON.stringify(name)}}`;
    };
    const server = await McpServer.start({ on: { 'tools/call': handler } });
    const agent = new PipeAgent();
    const clock = new FakeClock();
    const servers = [serverConfig('one', server.url)];
    const streams = { serverId: 'one', stdin: agent.stdin, stdout: agent.stdout };
    const gateway = serveAgentOnStdio({ ...gatewayConfig(servers), ...config }, streams, { clock });
    try {
      await test({ agent, gateway, server, clock, release: slow.open });
    } finally {
      await gateway.close();
      await server.close();
    }
  };
}

test(
  'an agent on a pipe is served: answers as they are ready, one message a line',
  withPipe(async ({ agent, release, server }) => {
    await agent.initialize({ capabilities: { roots: {} } });
    agent.say(callText('slow', '1'), callText('quick', '"1"'));
    const quick = await agent.next();
    assert.deepEqual([quick.id, quick.result.name], ['1', 'quick']);
    release();
    assert.equal((await agent.next()).id, 1);
    agent.say(callText('log', '2'));
    assert.equal((await agent.next()).params.data, 'first');
    assert.equal((await agent.next()).id, 2);
    agent.say(callText('ask', '3'));
    const question = await agent.next();
    assert.equal(question.method, 'roots/list');
    agent.say(JSON.stringify({ jsonrpc: '2.0', id: question.id, result: { roots: [1] } }));
    assert.deepEqual((await agent.next()).result.structuredContent, { roots: [1] });
    await server.until(() => server.openStreams === 1);
    server.broadcast('notifications/tools/list_changed');
    assert.equal((await agent.next()).method, 'notifications/tools/list_changed');
  }),
);

test(
  'a line that is no message is answered without an id, and the next one works',
  withPipe(async ({ agent }) => {
    await agent.initialize();
    for (const [line, code] of [
      ['{broken', -32700],
      ['123', -32600],
      ['[]', -32600],
      ['null', -32600],
    ] as const) {
      agent.say(line);
      const { id, error } = await agent.next();
      assert.deepEqual([id, error?.code], [null, code], line);
    }
    agent.say('', '  ', '\r', callText('x', '5'));
    assert.equal((await agent.next()).id, 5);
  }),
);

test(
  'a line above the limit ends the agent with an error, after what is under way',
  withPipe(
    async ({ agent, gateway }) => {
      await agent.initialize();
      agent.say('x'.repeat(5_000), callText('x'));
      const { id, error } = await agent.next();
      assert.equal(id, null);
      assert.equal(codeOf({ ...(error ? { error } : {}) }), 'too_large');
      await gateway.done;
    },
    { maxRequestBytes: 4_000 },
  ),
);

test(
  'requests sent together with initialize wait for its answer',
  withPipe(async ({ agent }) => {
    agent.say(initializeText({}, '0'), notificationText('notifications/initialized'), callText('x', '1'));
    assert.equal((await agent.next()).id, 0);
    assert.equal((await agent.next()).id, 1);
  }),
);

test(
  'a request before initialize is refused',
  withPipe(async ({ agent, server }) => {
    agent.say(callText('x', '1'));
    assert.equal(codeOf(await agent.next()), 'invalid_request');
    assert.equal(server.count('tools/call'), 0);
  }),
);

test(
  'a cancelled request is never answered',
  withPipe(async ({ agent, server, release }) => {
    await agent.initialize();
    agent.say(callText('slow', '1'));
    await server.until(() => server.count('tools/call') === 1);
    agent.say(notificationText('notifications/cancelled', { requestId: 1 }));
    await server.until(() => server.notifications.some(({ method }) => method === 'notifications/cancelled'));
    release();
    agent.say(callText('x', '2'));
    assert.equal((await agent.next()).id, 2);
  }),
);

test(
  'a second initialize begins anew: what was under way ends with an error',
  withPipe(async ({ agent, server }) => {
    await agent.initialize();
    agent.say(callText('slow', '1'));
    await server.until(() => server.count('tools/call') === 1);
    agent.say(initializeText({}, '2'));
    const ended = await agent.next();
    assert.equal(ended.id, 1);
    assert.equal(codeOf(ended), 'cancelled');
    assert.equal((await agent.next()).id, 2);
    agent.say(callText('x', '3'));
    assert.equal((await agent.next()).id, 3);
  }),
);

test(
  'a batch of the one revision that has them is answered message by message',
  withPipe(async ({ agent }) => {
    await agent.initialize({ revision: '2025-03-26' });
    agent.say(`[${callText('a', '1')},${callText('b', '2')}]`);
    const ids = [(await agent.next()).id, (await agent.next()).id];
    assert.deepEqual(ids.sort(), [1, 2]);
    agent.say('[]');
    assert.equal((await agent.next()).error?.code, -32600);
  }),
);

test(
  'at the end of its input an agent still gets what is under way, a last line without an end too',
  withPipe(async ({ agent, gateway, server, release }) => {
    await agent.initialize();
    agent.stdin.end(callText('slow', '1'));
    await server.until(() => server.count('tools/call') === 1);
    release();
    assert.equal((await agent.next()).id, 1);
    await gateway.done;
    await server.until(() => server.openStreams === 0);
  }),
);

test(
  'what is under way at the end of the input is waited for so long and no longer',
  withPipe(
    async ({ agent, gateway, server, clock }) => {
      await agent.initialize();
      agent.stdin.end(`${callText('slow', '1')}\n`);
      await server.until(() => server.count('tools/call') === 1);
      await clock.armed((delayMs) => delayMs === 10_000);
      clock.advance(10_000);
      const { id, ...answer } = await agent.next();
      assert.equal(id, 1);
      assert.equal(codeOf(answer), 'shutting_down');
      await gateway.done;
    },
    { shutdownMs: 10_000 },
  ),
);

test(
  'an agent that reads no more is gone, and takes what it asked for along',
  withPipe(async ({ agent, gateway, server }) => {
    await agent.initialize();
    agent.say(callText('slow', '1'));
    await server.until(() => server.count('tools/call') === 1);
    agent.stdout.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
    await gateway.done;
    await server.until(() => server.notifications.some(({ method }) => method === 'notifications/cancelled'));
  }),
);

test(
  'a drained agent gets what is under way and is then let go',
  withPipe(async ({ agent, gateway, server, release }) => {
    await agent.initialize();
    agent.say(callText('slow', '1'));
    await server.until(() => server.count('tools/call') === 1);
    const drained = gateway.drain();
    agent.say(callText('x', '2'));
    release();
    assert.equal((await agent.next()).id, 1);
    await drained;
    assert.equal(server.count('tools/call'), 1);
  }),
);

test(
  'an agent that closed its side, and then asks for the end, waits for nothing',
  withPipe(async ({ agent, gateway, server }) => {
    await agent.initialize();
    agent.stdin.end(`${callText('slow', '1')}\n`);
    await server.until(() => server.count('tools/call') === 1);
    await gateway.drain();
    assert.equal(codeOf(await agent.next()), 'shutting_down');
  }),
);

test('a child that ignores its end is gone before an agent would kill the gateway', async (t) => {
  const witness = await startWitness(t);
  const mcpServers = { one: { command: process.execPath, args: [STUBBORN, String(witness.port)] } };
  const { config } = parseConfig({ mcpServers }, {});
  const [agent, clock] = [new PipeAgent(), new FakeClock()];
  const streams = { serverId: 'one', stdin: agent.stdin, stdout: agent.stdout };
  const gateway = serveAgentOnStdio(config, streams, { clock });
  await agent.initialize();
  agent.stdin.end();
  for (const graceMs of [1_000, 1_500]) {
    await clock.armed((delayMs) => delayMs === graceMs);
    clock.advance(graceMs);
  }
  await witness.gone();
  await settle(gateway.done, clock);
});

test('initialize cannot be cancelled', async () => {
  let requests = 0;
  const upstream = createServer((_, res) => {
    if (++requests > 1) res.writeHead(405).end();
  }).listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const { port } = upstream.address() as AddressInfo;
  const held = once(upstream, 'request') as Promise<[IncomingMessage, ServerResponse]>;
  const agent = new PipeAgent();
  const streams = { serverId: 'one', stdin: agent.stdin, stdout: agent.stdout };
  const servers = [serverConfig('one', `http://127.0.0.1:${port}/mcp`)];
  const gateway = serveAgentOnStdio(gatewayConfig(servers), streams, { clock: new FakeClock() });
  agent.say(initializeText({}, '"i"'));
  const [request, response] = await held;
  const [chunk] = (await once(request, 'data')) as [Buffer];
  agent.say(notificationText('notifications/cancelled', { requestId: 'i' }), '{broken');
  assert.equal((await agent.next()).error?.code, -32700);
  const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } };
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(chunk.toString()).id, result }));
  assert.equal((await agent.next()).id, 'i');
  await gateway.close();
  upstream.closeAllConnections();
  upstream.close();
});
