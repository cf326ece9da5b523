import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type GatewayEvent, McpManager, parseConfig, startGateway } from '../../src/index.js';
import { EVERYTHING, entryOf, serveCli } from '../support/cli.js';
import { FakeClock } from '../support/fake-clock.js';
import {
  LIST_CHILD,
  namesOf,
  openManager,
  remote,
  serve,
  tokenOf,
  toolList,
} from '../support/manager-bench.js';
import type { ServerHandler } from '../support/mcp-server.js';
import { RawAgent } from '../support/raw-agent.js';

const MINUTE = 60_000;

/** A gateway of these `mcpServers`, and what became of each listing at it. */
async function gatewayOf(t: TestContext, servers: object) {
  const clock = new FakeClock();
  const outcomes: string[] = [];
  const emit = (event: GatewayEvent) => {
    if (event.type === 'cache_outcome' && event.method !== 'server/discover') outcomes.push(event.outcome);
  };
  const settings = { port: 0, connectionIdleMs: 2_000_000_000, sessionIdleMs: 2_000_000_000 };
  const { config } = parseConfig({ mcpServers: servers, ...settings }, {});
  const gateway = await startGateway(config, { clock, emit, env: {} });
  t.after(() => gateway.close());
  const agent = (id: string, token?: string) =>
    RawAgent.connect(`${gateway.url}/servers/${id}/mcp`, token === undefined ? {} : { token });
  return { gateway, clock, outcomes, agent };
}

/** A server whose list names the token it was asked with. */
function personal(hints: object = {}): ServerHandler {
  return (call) => toolList([`of-${tokenOf(call) ?? 'nobody'}`], hints);
}

// Order, spelling and hints as a server may choose them.
const ODD_TOOLS =
  '"tools":[{"name":"zeta","inputSchema":{"type":"object","b":1,"a":9007199254740993}},' +
  ' {"name":"10","x-\\u0076endor":1e400,"inputSchema":{"type":"object"}},{"name":"9","inputSchema":{"type":"object"}},' +
  '{"name":"alpha","inputSchema":{"type":"object"}}]';
const ODD_LIST = `{"ttlMs": 60000,${ODD_TOOLS}, "cacheScope":"private"}`;

test('an agent is given the server’s list in its order and bytes, on a miss and on a hit', async (t) => {
  const server = await serve(t, { on: { 'tools/list': () => ODD_LIST } });
  const { agent, outcomes } = await gatewayOf(t, { one: remote(server.url) });
  const raw = await agent('one');
  for (const id of ['1', '"two"', '9007199254740993']) {
    const { text } = await raw.request('tools/list', undefined, id);
    assert.equal(text, `{"jsonrpc":"2.0","id":${id},"result":{${ODD_TOOLS}}}`);
  }
  assert.deepEqual(outcomes, ['miss', 'hit', 'hit']);
});

test('two processes give the same bytes', async (t) => {
  const server = await serve(t, { on: { 'tools/list': () => ODD_LIST } });
  const texts: string[] = [];
  const gateways = [0, 1].map(() => serveCli(t, [server.url, '--port', '0']));
  for (const gateway of gateways) {
    const raw = await RawAgent.connect(`${await gateway.url()}/mcp`);
    for (let i = 0; i < 2; i++) texts.push((await raw.request('tools/list', undefined, '7')).text);
  }
  assert.equal(texts.length, 4);
  assert.equal(new Set(texts).size, 1);
  assert.equal(server.count('tools/list'), 2);
});

test('the manager gives a real server’s tools in the order of that server', async (t) => {
  const entry = entryOf(EVERYTHING);
  const { manager } = openManager(t, { everything: entry });
  const listed = await manager.listTools('everything');
  assert.ok(listed.length > 5);
  assert.deepEqual(await manager.listTools('everything'), listed);
  assert.deepEqual(await manager.listTools('everything', { fresh: true }), listed);
  const { content } = await manager.callTool('everything', 'echo', { message: 'hello' });
  assert.match(JSON.stringify(content), /hello/);
  assert.ok((await manager.listPrompts('everything')).length > 0);
  assert.ok((await manager.listResources('everything')).length > 0);
  assert.ok((await manager.listResourceTemplates('everything')).length > 0);
});

test('an hour that a server gives is 15 minutes for a manager behind a gateway, and private to each token', async (t) => {
  const server = await serve(t, { on: { 'tools/list': personal({ ttlMs: 60 * MINUTE }) } });
  const { gateway } = await gatewayOf(t, { one: remote(server.url) });
  const { manager, clock, outcomes } = openManager(t, { behind: remote(`${gateway.url}/servers/one/mcp`) });
  for (const token of ['A', 'B', 'A', 'B'])
    assert.deepEqual(namesOf(await manager.listTools('behind', { token })), [`of-${token}`]);
  assert.deepEqual(outcomes(), ['miss', 'miss', 'hit', 'hit']);
  clock.advance(15 * MINUTE - 1);
  await manager.listTools('behind', { token: 'A' });
  clock.advance(1);
  await manager.listTools('behind', { token: 'A' });
  assert.deepEqual(outcomes().slice(4), ['hit', 'miss']);
});

test('a list without hints is kept for 60 s by a gateway, and by a manager behind it', async (t) => {
  const server = await serve(t, { on: { 'tools/list': () => toolList(['a']) } });
  const {
    gateway,
    clock: gatewayClock,
    outcomes: atGateway,
  } = await gatewayOf(t, { one: remote(server.url) });
  const { manager, clock, outcomes } = openManager(t, { behind: remote(`${gateway.url}/servers/one/mcp`) });
  await manager.listTools('behind');
  clock.advance(MINUTE - 1);
  await manager.listTools('behind');
  clock.advance(1);
  gatewayClock.advance(MINUTE - 1);
  await manager.listTools('behind');
  clock.advance(MINUTE);
  gatewayClock.advance(1);
  await manager.listTools('behind');
  assert.deepEqual(outcomes(), ['miss', 'hit', 'miss', 'miss']);
  assert.deepEqual(atGateway, ['miss', 'hit', 'miss']);
});

test('no agent sees the list of another token, and none the other’s change of it', async (t) => {
  const server = await serve(t, { on: { 'tools/list': personal({ ttlMs: MINUTE }) } });
  const { agent } = await gatewayOf(t, { one: remote(server.url), two: remote(server.url) });
  for (const id of ['one', 'two', 'one'])
    for (const token of ['A', 'B', undefined]) {
      const raw = await agent(id, token);
      assert.deepEqual(namesOf((await raw.request('tools/list')).answer.result.tools), [
        `of-${token ?? 'nobody'}`,
      ]);
    }
  assert.equal(server.count('tools/list'), 6);
});

test('ten agents of two servers who list ten times cost one request for each server', async (t) => {
  const server = await serve(t, { on: { 'tools/list': () => toolList(['a'], { ttlMs: MINUTE }) } });
  const { agent } = await gatewayOf(t, { one: remote(server.url), two: remote(server.url) });
  const agents = await Promise.all(Array.from({ length: 10 }, (_, i) => agent(i % 2 ? 'one' : 'two')));
  for (let i = 0; i < 10; i++) await Promise.all(agents.map((raw) => raw.request('tools/list')));
  assert.equal(server.count('tools/list'), 2);
});

test('an agent gets page by page what the server gives, and each cursor works', async (t) => {
  const page = (from: number) => Array.from({ length: Math.min(100, 250 - from) }, (_, i) => `t${from + i}`);
  const server = await serve(t, {
    on: {
      'tools/list': ({ message }) => {
        const from = Number(message.params?.cursor || 0);
        const next = from + 100 < 250 ? { nextCursor: from === 0 ? '100' : String(from + 100) } : {};
        return toolList(page(from), next);
      },
    },
  });
  const { agent, outcomes } = await gatewayOf(t, { one: remote(server.url) });
  const raw = await agent('one');
  for (let round = 0; round < 2; round++) {
    const names: string[] = [];
    let cursor: string | undefined;
    do {
      const params = cursor === undefined ? undefined : JSON.stringify({ cursor });
      const { tools, nextCursor } = (await raw.request('tools/list', params)).answer.result;
      names.push(...namesOf(tools));
      cursor = nextCursor;
    } while (cursor !== undefined);
    assert.deepEqual(
      names,
      Array.from({ length: 250 }, (_, i) => `t${i}`),
    );
  }
  assert.deepEqual(outcomes, ['miss', 'miss', 'miss', 'hit', 'hit', 'hit']);
});

test('an agent that asks for a fresh list gets one, and renews it for the others', async (t) => {
  let version = 1;
  const server = await serve(t, {
    on: { 'tools/list': () => toolList([`v${version}`], { ttlMs: MINUTE }) },
  });
  const { agent, outcomes } = await gatewayOf(t, { one: remote(server.url) });
  const [one, other] = [await agent('one'), await agent('one')];
  await one.request('tools/list');
  version = 2;
  const list = '{"jsonrpc":"2.0","id":9,"method":"tools/list"}';
  const { answer } = await one.exchange(list, { 'cache-control': 'no-cache' });
  assert.deepEqual(namesOf(answer.result.tools), ['v2']);
  assert.deepEqual(namesOf((await other.request('tools/list')).answer.result.tools), ['v2']);
  assert.deepEqual(outcomes, ['miss', 'fresh', 'hit']);
});

test('nothing that a list left behind keeps the process alive', async () => {
  const script = fileURLToPath(new URL('../support/list-and-leave.ts', import.meta.url));
  const loader = createRequire(import.meta.url).resolve('tsx');
  const server = [process.execPath, LIST_CHILD, '--once', '--ttl=900000'];
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ['--import', loader, script, ...server]);
  assert.equal(stdout, 'listing-1');
});

test('the configuration of the library is that of the gateway', async (t) => {
  const server = await serve(t, { on: { 'tools/list': () => toolList(['a']) } });
  const { config } = parseConfig({ mcpServers: { one: remote(server.url) } }, {});
  const manager = new McpManager(config);
  t.after(() => manager.closeAll());
  assert.deepEqual(namesOf(await manager.listTools('one')), ['a']);
});
