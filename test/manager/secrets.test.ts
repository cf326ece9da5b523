import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import {
  type GatewayEvent,
  listCacheKey,
  parseConfig,
  poolKey,
  poolKeyMatches,
  shownPoolKey,
  startGateway,
} from '../../src/index.js';
import { createLogger, logEvent } from '../../src/telemetry/logs.js';
import { EVENT_STREAM, HttpUpstream, JSON_BODY, type Responder } from '../support/http-upstream.js';
import { listChild, openManager, remote, serve, toolList } from '../support/manager-bench.js';
import { RawAgent } from '../support/raw-agent.js';
import { Happenings } from '../support/stdio-harness.js';

const TOKEN = 'tok-9f3c1d7e5b-verysecret';
const HASH = createHash('sha256').update(TOKEN).digest('hex');

test('a pool key is the server id, and the token’s hash where there is a token; 12 digits of it are shown', () => {
  assert.equal(poolKey('one'), 'one');
  const key = poolKey('one', HASH);
  assert.equal(key, `one#${HASH}`);
  assert.equal(shownPoolKey(key), `one#${HASH.slice(0, 12)}`);
  assert.equal(listCacheKey(key, 'one', 'private'), key);
  assert.equal(listCacheKey(key, 'one', 'public'), listCacheKey('one', 'one', 'public'));
  assert.ok(poolKeyMatches(key, 'one') && poolKeyMatches(key, key) && poolKeyMatches(key, shownPoolKey(key)));
  assert.ok(!poolKeyMatches(poolKey('oneX', HASH), 'one'));
});

test('connections are pooled by server and token, those of a child by server alone', async (t) => {
  const server = await serve(t, { on: { 'tools/list': () => toolList([]) } });
  const { manager, events } = openManager(t, { remote: remote(server.url), child: listChild() });
  for (const id of ['remote', 'child'])
    for (const token of [TOKEN, undefined, TOKEN]) await manager.listTools(id, { token });
  const pools = events.all.flatMap((event) => (event.type === 'server_connected' ? [event.pool] : []));
  assert.deepEqual(pools, [`remote#${HASH.slice(0, 12)}`, 'remote', 'child']);
  assert.equal(manager.poolSize, 3);
});

test('a token goes to the servers that take one, with every request, and to no other', async (t) => {
  const seen: (string | undefined)[] = [];
  const upstream = await HttpUpstream.start();
  t.after(() => upstream.stop());
  upstream.serveSessions();
  const own = remote(upstream.url(), { headers: { Authorization: 'Bearer the-operators' } });
  const { manager } = openManager(t, { asked: remote(upstream.url()), fixed: own });
  for (const id of ['asked', 'fixed']) {
    await manager.request(id, 'vendor/any', {}, { token: TOKEN });
    await upstream.received('GET');
    await manager.close(id);
    seen.push(...new Set(upstream.seen.splice(0).map(({ headers }) => headers.authorization)));
  }
  assert.deepEqual(seen, [`Bearer ${TOKEN}`, 'Bearer the-operators']);
});

/** Ways in which a server can give a token back. */
const echoes: Record<string, Responder> = {
  'a refusal that quotes it': (_, response) =>
    response.play({
      status: 401,
      headers: { 'www-authenticate': `Bearer error="invalid_token", error_description="${TOKEN}"` },
      chunks: [`the token ${TOKEN} is not known`],
    }),
  'a broken answer that quotes it': (_, response) =>
    response.play({ status: 500, headers: { 'content-type': 'text/html' }, chunks: [`<p>${TOKEN}</p>`] }),
  'a refused handshake whose error quotes it': (request, response) =>
    response.play({
      headers: JSON_BODY,
      chunks: [
        JSON.stringify({
          jsonrpc: '2.0',
          id: request.json.id,
          error: { code: -32000, message: `no entry for ${TOKEN}` },
        }),
      ],
    }),
  'a redirect that holds it': (_, response) =>
    response.play({ status: 307, headers: { location: `http://elsewhere.invalid/?t=${TOKEN}` } }),
  'a connection that breaks': (_, response) => response.reset(),
  'notifications that are named by it': (request, response) => {
    if (request.json?.id === undefined) return response.play({ status: 202 });
    const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: {}, tools: TOKEN };
    const said = JSON.stringify({ jsonrpc: '2.0', method: `notifications/${TOKEN}` });
    const answer = JSON.stringify({ jsonrpc: '2.0', id: request.json.id, result });
    response.play({
      headers: EVENT_STREAM,
      chunks: [`data: ${said}\n\ndata: ${TOKEN}\n\ndata: ${answer}\n\n`],
    });
  },
};

for (const [what, responder] of Object.entries(echoes))
  test(`a token stands in no event, log line or error of ours: ${what}`, async (t) => {
    const upstream = await HttpUpstream.start();
    t.after(() => upstream.stop());
    upstream.on('POST', '/mcp', responder).on('GET', '/mcp', responder);
    const bench = openManager(t, { one: remote(upstream.url()) });
    const failures: unknown[] = [];
    const use = bench.manager.listTools('one', { token: TOKEN });
    await use.catch((failure: unknown) => failures.push(failure));
    await bench.manager.close('one');
    assert.equal(failures.length, 1);
    assert.ok(upstream.seen.length > 0);
    assertSecret(
      bench.events.all,
      failures.filter((failure) => (failure as Error).name === 'GatewayError'),
    );
  });

test('a configured header stands in no event either, whatever the server sends back', async (t) => {
  const upstream = await HttpUpstream.start();
  t.after(() => upstream.stop());
  for (const verb of ['POST', 'GET'])
    upstream.on(verb, '/mcp', echoes['a refused handshake whose error quotes it'] as Responder);
  const headers = { Authorization: `Bearer ${TOKEN}` };
  const bench = openManager(t, { one: remote(upstream.url(), { headers }) });
  await bench.manager.listTools('one').catch(() => {});
  assertSecret(bench.events.all, []);
});

test('a token stands in no event of a gateway whose server names a message by it', async (t) => {
  const server = await serve(t);
  const events = new Happenings<GatewayEvent>();
  const { config } = parseConfig({ mcpServers: { one: remote(server.url) }, port: 0 }, {});
  const gateway = await startGateway(config, { emit: (event) => events.add(event), env: {} });
  t.after(() => gateway.close());
  for (let i = 0; i < 2; i++) await RawAgent.connect(`${gateway.url}/mcp`, { token: TOKEN });
  await server.until(() => server.openStreams === 1);
  server.broadcast(`notifications/${TOKEN}`);
  await events.first(({ type }) => type === 'message_dropped');
  assertSecret(events.all, []);
});

test('a token that no header can carry is refused without being shown', async (t) => {
  const bench = openManager(t, { one: remote('http://127.0.0.1:1/') });
  const token = `${TOKEN}\nnext`;
  const failure = await bench.manager.listTools('one', { token }).catch((thrown: unknown) => thrown);
  assert.equal((failure as { code: string }).code, 'unauthorized');
  assertSecret(bench.events.all, [failure]);
});

/** Looks for the token in all that was emitted, in what the log makes of it, and in the errors' own texts. */
function assertSecret(events: readonly GatewayEvent[], failures: readonly unknown[]): void {
  const lines: string[] = [];
  const logger = createLogger({ level: 'trace', output: { write: (line) => void lines.push(line) } });
  for (const event of events) logEvent(logger, event);
  const texts = failures.map((failure) => {
    const { message, stack } = failure as Error;
    return `${message} ${stack}`;
  });
  for (const text of [JSON.stringify(events), ...lines, ...texts])
    assert.ok(!text.includes(TOKEN), `it stands in ${text}`);
  assert.ok(lines.length > 0);
}
