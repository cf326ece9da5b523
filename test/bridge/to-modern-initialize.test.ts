import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LEGACY_REVISIONS } from '../../src/protocol/revisions.js';
import { LegacyOnModern, said, wire } from '../support/legacy-on-modern.js';

const PARAMS = '{"protocolVersion":"2025-06-18","capabilities":{}}';

/** JSON text of a DiscoverResult with these members. */
function discovered(members: string): string {
  return `{"resultType":"complete","supportedVersions":["2026-07-28"],${members}}`;
}

const PLAIN = discovered('"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"');

/** What an agent's `initialize` is answered with, as text, by a server that discovers so. */
async function initialized(discover: string, revision = '2025-11-25'): Promise<string> {
  const bench = new LegacyOnModern(() => discover);
  return await bench.agent({ revision }).request('initialize', PARAMS, '"i"');
}

test('an agent of each revision is answered with its own, and one of an unknown one with the latest', async () => {
  for (const revision of LEGACY_REVISIONS)
    assert.equal(JSON.parse(await initialized(PLAIN, revision)).result.protocolVersion, revision);
  for (const revision of ['2099-01-01', '2026-07-28', ''])
    assert.equal(JSON.parse(await initialized(PLAIN, revision)).result.protocolVersion, '2025-11-25');
});

test('capabilities, serverInfo, instructions and _meta keep the bytes of the server', async () => {
  const capabilities =
    '{ "logging":{} , "resources":{"subscribe":true,"listChanged":true},"tools":{"x":1.0},"vendor":9007199254740993,"extensions":{"a/b":{"n":1e2}} }';
  const text = await initialized(
    discovered(
      `"capabilities":${capabilities},"instructions":"\\u0041 \\/ b","_meta":{"v/x":-0,"io.modelcontextprotocol/serverInfo":{"version":"1.0","name":"\\u0061","icons":[ ]}}`,
    ),
  );
  assert.equal(
    text,
    `{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-11-25","capabilities":${capabilities},"serverInfo":{"version":"1.0","name":"\\u0061","icons":[ ]},"instructions":"\\u0041 \\/ b","_meta":{"v/x":-0}}}`,
  );
});

test('a server that does not say its name is given the one that it is configured under', async () => {
  const { result } = JSON.parse(await initialized(PLAIN));
  assert.deepEqual(result, {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'one', version: '0' },
  });
});

test('tasks of neither kind are announced', async () => {
  const capabilities =
    '{"tasks":{"list":{}},"extensions":{"io.modelcontextprotocol/tasks":{},"a/b":{}},"tools":{}}';
  const { result } = JSON.parse(await initialized(discovered(`"capabilities":${capabilities}`)));
  assert.deepEqual(result.capabilities, { extensions: { 'a/b': {} }, tools: {} });
});

test('a server is asked in the envelope of its agent, without a session', async () => {
  const bench = new LegacyOnModern(() => PLAIN);
  await bench
    .agent({ capabilities: '{"tasks":{},"roots":{"listChanged":true}}' })
    .request('initialize', PARAMS);
  assert.equal(bench.sent[0]?.era, 'modern');
  assert.equal(bench.sent[0]?.message.method, 'server/discover');
  assert.equal(said(bench.sent[0], 'protocolVersion'), '2026-07-28');
  assert.deepEqual(said(bench.sent[0], 'clientInfo'), { name: 'old', version: '1' });
  assert.deepEqual(said(bench.sent[0], 'clientCapabilities'), { roots: { listChanged: true } });
  assert.equal(wire(bench.sent[0]).params.protocolVersion, undefined);
});

test('agents that come together are greeted by one answer, and later ones as long as it may be kept', async () => {
  for (const [ttl, keptMs] of [
    ['"ttlMs":0', 5_000],
    ['"ttlMs":20000', 20_000],
    ['"ttlMs":86400000', 60_000],
    ['"ttlMs":"odd"', 60_000],
  ] as const) {
    const bench = new LegacyOnModern(() => discovered(`"capabilities":{},${ttl}`));
    const greet = (id: string) => bench.agent({ id }).request('initialize', PARAMS);
    await Promise.all(['a', 'b', 'c'].map(greet));
    bench.clock.advance(keptMs - 1);
    await greet('d');
    assert.equal(bench.sent.length, 1, ttl);
    bench.clock.advance(1);
    await greet('e');
    assert.equal(bench.sent.length, 2, ttl);
  }
});

test('agents of another partition or with other capabilities are not greeted by the same answer', async () => {
  const bench = new LegacyOnModern((_, { caller }) =>
    discovered(`"capabilities":{},"instructions":"for ${caller.token}"`),
  );
  bench.partitionOf = (serverId, _, { tokenHash }) => `${serverId}#${tokenHash}`;
  const instructions = async (token: string, capabilities: string) =>
    JSON.parse(await bench.agent({ token, capabilities }).request('initialize', PARAMS)).result.instructions;
  assert.equal(await instructions('A', '{}'), 'for A');
  assert.equal(await instructions('B', '{}'), 'for B');
  assert.equal(bench.sent.length, 2);
  await instructions('A', '{"roots":{}}');
  assert.equal(bench.sent.length, 3);
});

test('an agent that gives up does not end the greeting of others', async () => {
  let discover!: (text: string) => void;
  const bench = new LegacyOnModern(() => new Promise((resolve) => (discover = resolve)));
  const aborter = new AbortController();
  const first = bench.agent({ id: 'a' }).request('initialize', PARAMS, '1', aborter.signal);
  const second = bench.agent({ id: 'b' }).request('initialize', PARAMS);
  aborter.abort();
  assert.equal(bench.sent[0]?.signal.aborted, false);
  discover(PLAIN);
  assert.ok(JSON.parse(await second).result);
  await first;
});

test('an error is handed on and not kept, and so is a failure', async () => {
  const bench = new LegacyOnModern(() => '{"error":{"code":-32000,"message":"not \\u0079et"}}');
  const agent = bench.agent();
  assert.equal(
    await agent.request('initialize', PARAMS),
    '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"not \\u0079et"}}',
  );
  bench.script = () => Promise.reject(new Error('down'));
  await assert.rejects(agent.request('initialize', PARAMS), /down/);
  bench.script = () => PLAIN;
  assert.ok(JSON.parse(await agent.request('initialize', PARAMS)).result);
});

test('an answer that can be read in two ways is a fault of the server', async () => {
  const twice = discovered('"capabilities":{},"capabilities":{}');
  await assert.rejects(initialized(twice), {
    code: 'server_protocol',
    message: /^Server "one" answered what/,
  });
});

test('a ping is answered here', async () => {
  const bench = new LegacyOnModern(() => PLAIN);
  assert.equal(await bench.agent().request('ping'), '{"jsonrpc":"2.0","id":1,"result":{}}');
  assert.equal(bench.sent.length, 0);
});

test('methods of another meaning in 2026-07-28 do not reach the server', async () => {
  const bench = new LegacyOnModern(() => PLAIN);
  for (const method of [
    'subscriptions/listen',
    'server/discover',
    'tasks/get',
    'tasks/list',
    'tasks/result',
  ]) {
    const { error } = JSON.parse(await bench.agent().request(method, '{}'));
    assert.deepEqual([error.code, error.data], [-32601, { server: 'one' }], method);
  }
  assert.equal(bench.sent.length, 0);
});
