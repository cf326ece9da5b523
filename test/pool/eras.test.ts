import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import type { GatewayEvent } from '../../src/pipeline/events.js';
import { open } from '../support/agent-http.js';
import { FakeClock } from '../support/fake-clock.js';
import { type Forwarding, forwarding } from '../support/forwarding.js';
import { McpServer, type McpServerOptions, Refusal } from '../support/mcp-server.js';
import { DISCOVERED, modernCall, modernText } from '../support/modern-text.js';
import { RawAgent } from '../support/raw-agent.js';

const HOUR = 60 * 60_000;
const NEVER = { requestTimeoutMs: 1_000_000_000, connectTimeoutMs: 1_000_000_000 };
const TOOL = '{"content":[{"type":"text","text":"done"}]}';

/** A scripted server of 2026-07-28 alone. */
function modernOnly(on: McpServerOptions['on'] = {}): McpServerOptions {
  return {
    on: { 'server/discover': () => DISCOVERED, 'tools/call': () => TOOL, ...on },
    sessions: false,
    stream: false,
    greet: () => {
      throw new Refusal(-32602, 'this server wants _meta');
    },
  };
}

interface Bench {
  readonly bench: Forwarding;
  readonly clock: FakeClock;
  readonly found: GatewayEvent[];
  /** Sends a modern request; answers with the status and the message. */
  modern(
    method: string,
    params?: object,
    id?: string,
    token?: string,
  ): Promise<{ status: number; wire: Answer }>;
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
type Answer = any;

async function benchOf(t: TestContext, server: McpServer, more: object = {}): Promise<Bench> {
  const clock = new FakeClock();
  const bench = await forwarding(t, {
    servers: { one: { type: 'http', url: server.url, ...NEVER, ...more } },
    behind: [server],
    clock,
  });
  const found: GatewayEvent[] = bench.events.all.filter((event) => event.type === 'era_found');
  return {
    bench,
    clock,
    found,
    async modern(method, params = {}, id = '1', token) {
      const name = (params as { name?: string }).name;
      const answer = await open(bench.url(), {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': method,
          ...(name === undefined ? {} : { 'mcp-name': name }),
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
        body:
          method === 'tools/call' && name !== undefined
            ? modernCall(name, id)
            : modernText(method, id, params),
      });
      return { status: answer.status, wire: await answer.json() };
    },
  };
}

test('a legacy agent on a legacy server is served without a probe', async (t) => {
  const server = await McpServer.start();
  const { bench } = await benchOf(t, server);
  const agent = await RawAgent.connect(bench.url());
  await agent.request('tools/list');
  assert.equal(server.count('server/discover'), 0);
});

test('a modern agent on a server that refuses the probe is served over `initialize`, from then on without one', async (t) => {
  const server = await McpServer.start();
  const { modern } = await benchOf(t, server);
  for (let i = 0; i < 3; i++)
    assert.equal((await modern('tools/list', {}, String(i))).wire.result.resultType, 'complete');
  assert.deepEqual([server.count('server/discover'), server.count('initialize')], [1, 1]);
});

test('a modern agent on a modern server is served without `initialize`, its message as it came', async (t) => {
  const seen: string[] = [];
  const server = await McpServer.start(
    modernOnly({
      'tools/call': ({ raw }) => {
        seen.push(raw);
        return TOOL;
      },
    }),
  );
  const { modern } = await benchOf(t, server);
  await modern('tools/call', { name: 'a' }, '"x"');
  assert.equal(server.count('initialize'), 0);
  assert.equal(seen[0]?.replace(/"id":\d+/, '"id":"x"'), modernCall('a', '"x"'));
});

test('each request to a modern server mirrors its body in headers', async (t) => {
  const seen: (string | undefined)[][] = [];
  const server = await McpServer.start(
    modernOnly({
      'tools/call': ({ headers }) => {
        const named = ['mcp-protocol-version', 'mcp-method', 'mcp-name', 'mcp-session-id'];
        seen.push(named.map((name) => headers[name] as string | undefined));
        return TOOL;
      },
    }),
  );
  const { bench, modern } = await benchOf(t, server);
  await modern('tools/call', { name: 'a' });
  const agent = await RawAgent.connect(bench.url());
  await agent.request('tools/call', '{"name":"wörld","arguments":{}}');
  const coded = `=?base64?${Buffer.from('wörld').toString('base64')}?=`;
  assert.deepEqual(seen, [
    ['2026-07-28', 'tools/call', 'a', undefined],
    ['2026-07-28', 'tools/call', coded, undefined],
  ]);
});

test('a legacy agent on a modern server is served over the bridge, and the refusal is remembered', async (t) => {
  const server = await McpServer.start(modernOnly());
  const { bench } = await benchOf(t, server);
  for (let i = 0; i < 3; i++) {
    const agent = await RawAgent.connect(bench.url());
    const { answer } = await agent.request('tools/list');
    assert.deepEqual(answer.result, { tools: [] });
  }
  assert.equal(server.count('initialize'), 1);
});

test('each agent is served in its own era by a server that speaks both', async (t) => {
  const server = await McpServer.start({ on: { 'server/discover': () => DISCOVERED } });
  const { bench, modern } = await benchOf(t, server);
  const agent = await RawAgent.connect(bench.url());
  await agent.request('tools/list');
  await modern('tools/list');
  assert.deepEqual(
    [server.count('initialize'), server.count('server/discover'), server.count('tools/list')],
    [1, 1, 2],
  );
});

test('many modern agents that come at once share one probe', async (t) => {
  const server = await McpServer.start(modernOnly());
  const { modern } = await benchOf(t, server);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => modern('tools/call', { name: 'a' }, String(i))),
  );
  for (const [i, { wire }] of answers.entries()) assert.equal(wire.id, i);
  assert.equal(server.count('server/discover'), 1);
});

test('a server that is down, busy or wants another credential gets no verdict, and its failure is the answer', async (t) => {
  for (const status of [500, 503, 429, 401, 403]) {
    let refuse = true;
    const server = await McpServer.start({
      ...modernOnly(),
      intercept: (request, response) => {
        if (!refuse || request.method !== 'POST') return false;
        response.writeHead(status).end();
        return true;
      },
    });
    const { modern, clock } = await benchOf(t, server);
    const refused = await modern('tools/call', { name: 'a' });
    assert.ok(refused.wire.error, String(status));
    refuse = false;
    clock.advance(HOUR / 60);
    assert.equal((await modern('tools/call', { name: 'a' })).wire.result.content[0].text, 'done');
    assert.equal(server.count('initialize'), 0, String(status));
  }
});

test('a verdict is asked for anew after an hour', async (t) => {
  const server = await McpServer.start();
  const { modern, clock } = await benchOf(t, server);
  await modern('prompts/list');
  clock.advance(HOUR - 1);
  await modern('prompts/list');
  assert.equal(server.count('server/discover'), 1);
  clock.advance(1);
  await modern('prompts/list');
  assert.equal(server.count('server/discover'), 2);
});

/** A server that is one of either era, as the test says, and refuses the other in this way. */
async function turning(t: TestContext, refuse: (response: ServerResponse) => void) {
  const state = { modern: false, calls: 0 };
  const server = await McpServer.start({
    on: {
      'server/discover': () => {
        if (!state.modern) throw new Refusal(-32601, 'Method not found');
        return DISCOVERED;
      },
      'tools/call': () => {
        state.calls++;
        return TOOL;
      },
    },
    intercept: (request, response) => {
      const asModern = request.headers['mcp-protocol-version'] === '2026-07-28';
      // A probe is answered by the handler above.
      const probe = request.headers['mcp-method'] === 'server/discover';
      if (probe || asModern === state.modern || request.method !== 'POST') return false;
      request.resume();
      refuse(response);
      return true;
    },
  });
  return { state, server, ...(await benchOf(t, server)) };
}

function json(status: number, code: number, message: string, data?: object) {
  return (response: ServerResponse) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message, data } }));
  };
}

const AS_MODERN: readonly (readonly [string, (response: ServerResponse) => void])[] = [
  ['-32022', json(400, -32022, 'Unsupported protocol version', { supported: ['2026-07-28'] })],
  ['-32020', json(400, -32020, 'MCP-Protocol-Version is missing')],
  ['-32602', json(400, -32602, '_meta is missing')],
  ['-32600', json(400, -32600, 'Invalid Request')],
  ['404 with -32601', json(404, -32601, 'Method not found')],
];

for (const [how, refuse] of AS_MODERN)
  test(`a legacy server that became a modern one and refuses by ${how} is served on at once, to agents of both eras`, async (t) => {
    const { state, bench, modern } = await turning(t, refuse);
    const agent = await RawAgent.connect(bench.url());
    const call = '{"name":"a","arguments":{}}';
    assert.ok((await agent.request('tools/call', call)).answer.result);
    assert.ok((await modern('tools/call', { name: 'a' })).wire.result);
    state.modern = true;
    const both = [modern('tools/call', { name: 'a' }), modern('tools/call', { name: 'a' }, '2')];
    for (const { wire } of await Promise.all(both)) assert.ok(wire.result, 'the modern agent');
    assert.ok((await agent.request('tools/call', call)).answer.result, 'the legacy agent');
    assert.equal(state.calls, 5);
  });

test('a legacy server that refuses many requests is asked seldom whether it became a modern one', async (t) => {
  const server = await McpServer.start({
    on: {
      'tools/call': () => {
        throw new Refusal(-32602, 'Unknown tool', undefined, 400);
      },
    },
  });
  const { bench, clock } = await benchOf(t, server);
  const agent = await RawAgent.connect(bench.url());
  const refused = async () =>
    assert.equal((await agent.request('tools/call', '{"name":"a"}')).answer.error?.code, -32602);
  for (let i = 0; i < 5; i++) await refused();
  assert.equal(server.count('server/discover'), 1);
  clock.advance(5_000);
  await refused();
  assert.equal(server.count('server/discover'), 2);
});

const AS_LEGACY: readonly (readonly [string, (response: ServerResponse) => void])[] = [
  ['a text', (response) => void response.writeHead(404).end('Not Found')],
  ['-32000', json(400, -32000, 'Bad Request: Server not initialized')],
  ['an unknown version', json(400, -32000, 'Bad Request: Unsupported protocol version')],
];

for (const [how, refuse] of AS_LEGACY)
  test(`a modern server that became a legacy one and refuses by ${how} is served on at once`, async (t) => {
    const { state, modern } = await turning(t, refuse);
    state.modern = true;
    assert.ok((await modern('tools/call', { name: 'a' })).wire.result);
    state.modern = false;
    assert.ok((await modern('tools/call', { name: 'a' })).wire.result);
    assert.equal(state.calls, 2);
  });

test('a caller whom the server does not want takes it away from nobody else', async (t) => {
  const server = await McpServer.start({
    ...modernOnly(),
    intercept: (request, response) => {
      if (request.headers.authorization !== 'Bearer bad') return false;
      request.resume();
      response.writeHead(404).end('no such tenant');
      return true;
    },
  });
  const { modern } = await benchOf(t, server);
  for (let i = 0; i < 3; i++) {
    assert.ok((await modern('tools/call', { name: 'a' }, '1', 'good')).wire.result);
    assert.match((await modern('tools/call', { name: 'a' }, '1', 'bad')).wire.error.message, /404/);
  }
  assert.equal(server.count('initialize'), 0);
});

test('a call that ran is not run again for the code of its error', async (t) => {
  const server = await McpServer.start(
    modernOnly({
      'tools/call': ({ notify }) => {
        notify('notifications/message', { level: 'info', data: 'at work' });
        throw new Refusal(-32020, 'somebody else’s headers');
      },
    }),
  );
  const { bench } = await benchOf(t, server);
  const agent = await RawAgent.connect(bench.url());
  assert.ok((await agent.request('tools/call', '{"name":"a","arguments":{}}')).answer.error);
  assert.equal(server.count('tools/call'), 1);
});

test('an era that the configuration states is not asked for', async (t) => {
  const both = { on: { 'server/discover': () => DISCOVERED } };
  const asLegacy = await McpServer.start(both);
  const legacy = await benchOf(t, asLegacy, { era: 'legacy' });
  await legacy.modern('tools/list');
  assert.deepEqual([asLegacy.count('server/discover'), asLegacy.count('initialize')], [0, 1]);
  const asModern = await McpServer.start(both);
  const { bench } = await benchOf(t, asModern, { era: 'modern' });
  await (await RawAgent.connect(bench.url())).request('tools/list');
  assert.equal(asModern.count('initialize'), 0);
});

test('a server that is stated to be modern and is not, is an error that says so', async (t) => {
  const server = await McpServer.start();
  const { modern } = await benchOf(t, server, { era: 'modern' });
  const { wire } = await modern('tools/list');
  assert.match(wire.error.message, /"one".*2026-07-28/);
});

test('a tool whose schema mirrors its arguments badly is left out, the others keep their bytes', async (t) => {
  const good = '{"name":"good" , "inputSchema":{"type":"object","n":1.0}}';
  const bad =
    '{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}}';
  const server = await McpServer.start(
    modernOnly({ 'tools/list': () => `{"tools":[${good},${bad}],"ttlMs":1000,"cacheScope":"private"}` }),
  );
  const { bench, modern } = await benchOf(t, server);
  const { wire } = await modern('tools/list');
  assert.deepEqual(wire.result.tools, [JSON.parse(good)]);
  const event = await bench.events.first(({ type }) => type === 'tool_excluded');
  assert.equal(event.type === 'tool_excluded' && event.tool, 'bad');
});

test('a call that is refused for its headers is sent again with those that the list asks for', async (t) => {
  const tool = {
    name: 'sql',
    inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } },
  };
  const calls: (string | undefined)[] = [];
  const server = await McpServer.start(
    modernOnly({
      'tools/list': () => JSON.stringify({ tools: [tool], ttlMs: 0, cacheScope: 'private' }),
      'tools/call': ({ headers }) => {
        const header = headers['mcp-param-region'] as string | undefined;
        calls.push(header);
        if (header === undefined) throw new Refusal(-32020, 'Mcp-Param-Region is missing', undefined, 400);
        return TOOL;
      },
    }),
  );
  const { bench } = await benchOf(t, server);
  const agent = await RawAgent.connect(bench.url());
  const { answer } = await agent.request('tools/call', '{"name":"sql","arguments":{"region":"eu"}}');
  assert.equal(answer.result.content[0].text, 'done');
  assert.deepEqual(calls, [undefined, 'eu']);
  await agent.request('tools/call', '{"name":"sql","arguments":{"region":"ü"}}');
  assert.deepEqual(calls.slice(2), [`=?base64?${Buffer.from('ü').toString('base64')}?=`]);
});

test('a server that refuses the headers of every call is asked twice, and its refusal is the answer', async (t) => {
  const server = await McpServer.start(
    modernOnly({
      'tools/call': () => {
        throw new Refusal(-32020, 'never', undefined, 400);
      },
    }),
  );
  const { modern } = await benchOf(t, server);
  const { status, wire } = await modern('tools/call', { name: 'a' });
  assert.deepEqual([status, wire.error.code, wire.error.message], [400, -32020, 'never']);
  assert.equal(server.count('tools/call'), 2);
});

test('a schema that changed unheard costs nobody more than one refusal that nobody sees', async (t) => {
  const tool = (header: string) => ({
    name: 'sql',
    inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': header } } },
  });
  let header = 'Old';
  const server = await McpServer.start(
    modernOnly({
      'tools/list': () => JSON.stringify({ tools: [tool(header)], ttlMs: 600_000, cacheScope: 'private' }),
      'tools/call': ({ headers }) => {
        if (headers[`mcp-param-${header.toLowerCase()}`] === undefined)
          throw new Refusal(-32020, 'missing', undefined, 400);
        return TOOL;
      },
    }),
  );
  const { bench, modern } = await benchOf(t, server);
  await modern('tools/list');
  header = 'New';
  const agent = await RawAgent.connect(bench.url());
  const params = '{"name":"sql","arguments":{"region":"eu"}}';
  assert.ok((await agent.request('tools/call', params)).answer.result);
  const { wire } = await modern('tools/list');
  assert.equal(wire.result.tools[0].inputSchema.properties.region['x-mcp-header'], 'New');
});
