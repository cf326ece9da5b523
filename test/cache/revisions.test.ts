import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernHttp,
} from '@modelcontextprotocol/client';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { type Gateway, startGateway } from '../../src/app/gateway.js';
import { startFixtureServer } from '../conformance/fixture-server.js';
import { startModernServer } from '../matrix/modern-server.js';
import { POST_HEADERS, TestAgent } from '../support/agent-gateway.js';
import { open } from '../support/agent-http.js';
import { ServingCli } from '../support/cli.js';
import { FakeClock } from '../support/fake-clock.js';
import { McpServer } from '../support/mcp-server.js';
import { type Declaration, DISCOVERED, modernText } from '../support/modern-text.js';

const ROOT = new URL('../..', import.meta.url);
const MINUTE = 60_000;
const INFO = { name: 'test', version: '1' };

/** In an order that no sorting makes, and in a spelling that no serialiser writes. */
const TOOLS =
  '[{"name":"zeta","inputSchema":{"type":"object","maximum":2512292042121000001}},' +
  ' {"inputSchema":{"type":"object"},"name":"\\u0061lpha","x":1.0}, {"name":"Mid","inputSchema":{"type":"object"}}]';

/** A server of both eras that says `hints`, JSON text of members, in its lists. */
async function dualServer(t: TestContext, hints = ''): Promise<McpServer> {
  const server = await McpServer.start({
    on: { 'server/discover': () => DISCOVERED, 'tools/list': () => `{"tools":${TOOLS}${hints}}` },
  });
  t.after(() => server.close());
  return server;
}

/** A gateway in front of one server, with time that stands still. */
async function gatewayTo(
  t: TestContext,
  url: string,
): Promise<{ gateway: Gateway; clock: FakeClock; at: string }> {
  const clock = new FakeClock();
  const config = { mcpServers: { one: { type: 'http', url } }, port: 0 };
  const gateway = await startGateway(config, { clock });
  t.after(() => gateway.close());
  return { gateway, clock, at: `${gateway.url}/mcp` };
}

async function sendModern(url: string, method: string, declaration: Declaration = {}) {
  const { revision = '2026-07-28' } = declaration;
  const headers = { ...POST_HEADERS, 'mcp-protocol-version': String(revision), 'mcp-method': method };
  const answer = await open(url, { method: 'POST', headers, body: modernText(method, '1', {}, declaration) });
  return { status: answer.status, text: await answer.text() };
}

async function modernResult(url: string, method: string): Promise<Record<string, unknown>> {
  return JSON.parse((await sendModern(url, method)).text).result;
}

async function legacyList(agent: TestAgent): Promise<string> {
  return (await agent.post('{"jsonrpc":"2.0","id":7,"method":"tools/list"}')).text;
}

async function capabilitiesOf(t: TestContext, url: string): Promise<{ legacy: unknown; modern: unknown }> {
  const legacy = new LegacyClient(INFO);
  const modern = new ModernClient(INFO, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  t.after(() => Promise.all([legacy.close(), modern.close()]));
  await legacy.connect(new LegacyHttp(new URL(url)) as Parameters<LegacyClient['connect']>[0]);
  await modern.connect(new ModernHttp(new URL(url)));
  return { legacy: legacy.getServerCapabilities(), modern: modern.getServerCapabilities() };
}

const SERVERS = {
  'both eras': async (t: TestContext) => (await dualServer(t)).url,
  'the legacy era': async (t: TestContext) => {
    const server = await startFixtureServer(0, { legacyOnly: true });
    t.after(() => server.close());
    return server.url;
  },
  'the modern era': async (t: TestContext) => {
    const server = await startModernServer();
    t.after(() => server.close());
    return server.url;
  },
};

for (const [eras, start] of Object.entries(SERVERS))
  test(`a server of ${eras}: official clients are told the same capabilities, and for how long`, async (t) => {
    const { at, clock } = await gatewayTo(t, await start(t));
    const { legacy, modern } = await capabilitiesOf(t, at);
    assert.deepEqual(modern, legacy);
    assert.equal((modern as { tools?: { listChanged?: boolean } }).tools?.listChanged, true);
    const known = await modernResult(at, 'tools/list');
    clock.advance(1_500);
    const later = await modernResult(at, 'tools/list');
    assert.deepEqual([known['ttlMs'], later['ttlMs']], [MINUTE, MINUTE - 1_500]);
    const { ttlMs } = await modernResult(at, 'server/discover');
    assert.ok(Number.isInteger(ttlMs) && (ttlMs as number) >= 0 && (ttlMs as number) <= MINUTE);
  });

test('agents of both eras in turns are each told what their own request allows', async (t) => {
  const server = await dualServer(t, ',"ttlMs":5000,"cacheScope":"public"');
  const { at, clock } = await gatewayTo(t, server.url);
  const agent = await TestAgent.connect(at);
  for (const remainingMs of [5_000, 4_000, 3_000]) {
    assert.equal(await legacyList(agent), `{"jsonrpc":"2.0","id":7,"result":{"tools":${TOOLS}}}`);
    const hints = `"tools":${TOOLS},"ttlMs":${remainingMs},"cacheScope":"public"`;
    const { text } = await sendModern(at, 'tools/list');
    assert.equal(text, `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",${hints}}}`);
    clock.advance(1_000);
  }
  assert.equal(server.count('tools/list'), 2);
});

test('no revision but one that there is makes a request a modern one', async (t) => {
  const server = await dualServer(t);
  const { at } = await gatewayTo(t, server.url);
  for (const revision of ['latest', '', 20260728, null, '2026-07-29', '9999-12-31', '2026-7-28']) {
    const { status, text } = await sendModern(at, 'tools/list', { revision });
    assert.equal(status, 400);
    assert.doesNotMatch(text, /ttlMs|cacheScope|resultType/);
  }
  const { text } = await sendModern(at, 'tools/list', { revision: '2027-01-01' });
  const { code, data } = JSON.parse(text).error;
  assert.deepEqual([code, data.requested], [-32_022, '2027-01-01']);
  assert.ok(data.supported.includes('2026-07-28'));
  assert.equal(server.count('tools/list'), 0);
});

test('the order of a list is the server’s, and its bytes are the same again and in another process', async (t) => {
  const server = await dualServer(t);
  const { at } = await gatewayTo(t, server.url);
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', server.url, '--port', '0'], {
    cwd: ROOT,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  t.after(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  const other = await new ServingCli(child).url();
  const urls = [at, at, other.endsWith('/mcp') ? other : `${other}/mcp`];
  for (const url of [...urls, ...urls]) {
    const { text } = await sendModern(url, 'tools/list');
    assert.equal(/"tools":(\[.*\])/.exec(text)?.[1], TOOLS);
    const names = JSON.parse(text).result.tools.map(({ name }: { name: string }) => name);
    assert.deepEqual(names, ['zeta', 'alpha', 'Mid']);
  }
  assert.equal(server.count('tools/list'), 2);
});
