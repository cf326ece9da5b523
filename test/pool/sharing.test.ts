import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { sha256Hex } from '../../src/base/hash.js';
import { serve } from '../support/manager-bench.js';
import type { McpServerOptions, ServerCall } from '../support/mcp-server.js';
import {
  caller,
  exchange,
  localAgent,
  openCore,
  openGateway,
  remote,
  textOf,
  toolText,
} from '../support/pool-bench.js';

/** A server whose tool counts the calls of each session. */
async function counting(t: TestContext, options: McpServerOptions = {}) {
  const counters = new Map<string | undefined, number>();
  const count = ({ session }: ServerCall) => {
    const next = (counters.get(session) ?? 0) + 1;
    counters.set(session, next);
    return toolText(next);
  };
  return await serve(t, { ...options, on: { 'tools/call': count } });
}

/** What the counting tool answers each of two agents, in turn. */
async function countsOf(t: TestContext, isolate: string, tokens: readonly (string | undefined)[]) {
  const server = await counting(t);
  const bench = await openGateway(t, { one: remote(server.url, { isolate }) });
  const counts: string[] = [];
  for (const token of tokens) {
    const agent = await bench.agent(token === undefined ? {} : { token });
    counts.push(textOf(await agent.call('count')));
  }
  return { counts, server, bench };
}

for (const isolate of ['token', 'auto', 'principal'])
  test(`agents with one token share a session, others do not (isolate: ${isolate})`, async (t) => {
    const { counts, server } = await countsOf(t, isolate, ['A', 'A', 'B', undefined, 'A', undefined]);
    assert.deepEqual(counts, ['1', '2', '1', '1', '3', '2']);
    assert.equal(server.count('initialize'), 3);
  });

test('no two agents ever share a session that is isolated by session', async (t) => {
  const { counts, server } = await countsOf(t, 'session', ['A', 'A', 'B', undefined, undefined]);
  assert.deepEqual(counts, ['1', '1', '1', '1', '1']);
  assert.equal(server.count('initialize'), 5);
});

test('an agent that has its connection to itself is introduced by its own name, others by ours', async (t) => {
  for (const [isolate, name] of [
    ['session', 'raw'],
    ['auto', 'sidegate'],
  ] as const) {
    const { server } = await countsOf(t, isolate, ['A']);
    assert.equal(server.initialized[0]?.params.clientInfo.name, name);
  }
});

test('agents that offer different things never share a connection, however they spell the same offer', async (t) => {
  const server = await counting(t);
  const bench = await openGateway(t, { one: remote(server.url) });
  const counts: string[] = [];
  for (const capabilities of [
    {},
    { sampling: {}, roots: { listChanged: true } },
    { roots: { listChanged: true }, sampling: {} },
    { sampling: {} },
  ])
    counts.push(textOf(await (await bench.agent({ capabilities })).call('count')));
  assert.deepEqual(counts, ['1', '1', '2', '1']);
});

/** Counts that callers get who are known by name. */
async function countsOfPrincipals(
  t: TestContext,
  entry: object,
  callers: readonly ReturnType<typeof caller>[],
) {
  const server = await counting(t);
  const { core } = openCore(t, { one: remote(server.url, entry) });
  const counts: string[] = [];
  for (const [at, from] of callers.entries()) {
    const answer = await core.handle(
      exchange(localAgent(`agent ${at}`), from, 'tools/call', { name: 'count' }),
    );
    counts.push(textOf({ text: '', answer: JSON.parse(answer.bytes.toString()) }));
  }
  return counts;
}

test('callers who are known by name never share a session, though they share a credential', async (t) => {
  const callers = [caller('A', 'ann'), caller('A', 'bob'), caller('A', 'ann')];
  for (const isolate of ['auto', 'principal'])
    assert.deepEqual(await countsOfPrincipals(t, { isolate }, callers), ['1', '1', '2'], isolate);
  assert.deepEqual(await countsOfPrincipals(t, { isolate: 'token' }, callers), ['1', '2', '3']);
});

test('the same holds where the credential is the one that the gateway is configured with', async (t) => {
  const entry = { headers: { Authorization: 'Bearer of-the-operator' } };
  const callers = [caller('A', 'ann'), caller('B', 'bob'), caller('C', 'ann')];
  assert.deepEqual(await countsOfPrincipals(t, entry, callers), ['1', '1', '2']);
});

test('no name that a caller may have reaches into the key of another', async (t) => {
  const server = await counting(t);
  const { core } = openCore(t, { one: remote(server.url, { isolate: 'principal' }) });
  const offer = '{"sampling":{}}';
  const forged = `ann#declares:${sha256Hex(offer).slice(0, 16)}`;
  const count = async (name: string, fingerprint?: string) => {
    const agent = localAgent(name, fingerprint);
    const answer = await core.handle(exchange(agent, caller('A', name), 'tools/call', { name: 'count' }));
    return textOf({ text: '', answer: JSON.parse(answer.bytes.toString()) });
  };
  assert.deepEqual([await count('ann', offer), await count(forged)], ['1', '1']);
});

test('lists are shared by callers with one credential, whoever they are, unless the operator isolates them', async (t) => {
  const server = await counting(t);
  for (const [isolate, asked] of [
    ['auto', 1],
    ['principal', 2],
  ] as const) {
    const { core } = openCore(t, { one: remote(server.url, { isolate }) });
    const before = server.count('tools/list');
    for (const name of ['ann', 'bob', 'ann'])
      await core.handle(exchange(localAgent(name), caller('A', name), 'tools/list'));
    assert.equal(server.count('tools/list') - before, asked, isolate);
  }
});

test('a pool key is shown as the server id and twelve digits of a hash, and the token is nowhere', async (t) => {
  const server = await counting(t);
  const token = 'secret-token-of-an-agent';
  const bench = await openGateway(t, { one: remote(server.url) });
  await bench.agent();
  await bench.agent({ token });
  const [anonymous, known] = bench.of('server_connected');
  assert.equal(anonymous?.pool, 'one');
  assert.match(known?.pool ?? '', /^one#[0-9a-f]{12}$/);
  await bench.gateway.close();
  assert.equal(bench.of('server_disconnected').length, 2);
  assert.ok(!JSON.stringify(bench.events.all).includes(token));
});
