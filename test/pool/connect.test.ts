import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { GatewayError } from '../../src/base/errors.js';
import { type GatewayEvent, McpManager } from '../../src/index.js';
import { FakeClock } from '../support/fake-clock.js';
import { Held, serve } from '../support/manager-bench.js';
import { Refusal } from '../support/mcp-server.js';
import { ChildServer, openGateway, remote, toolText } from '../support/pool-bench.js';
import { Happenings, isAlive } from '../support/stdio-harness.js';

const TWENTY = Array.from({ length: 20 });

function managerOf(t: TestContext, entry: object, clock = new FakeClock()) {
  const manager = new McpManager({ mcpServers: { one: entry } }, { clock, random: () => 0.5 });
  t.after(() => manager.closeAll());
  return { manager, clock };
}

test('twenty first calls at once make one session', async (t) => {
  const server = await serve(t, { on: { 'tools/call': () => toolText('done') } });
  const { manager } = managerOf(t, remote(server.url));
  await Promise.all(TWENTY.map(() => manager.callTool('one', 'any')));
  assert.equal(server.count('initialize'), 1);
  assert.equal(server.count('tools/call'), 20);
});

test('twenty first calls at once start one child', async (t) => {
  const child = new ChildServer(t);
  const { manager } = managerOf(t, child.entry());
  const answers = await Promise.all(TWENTY.map(() => manager.callTool('one', 'count')));
  const counts = answers.map(({ content }) => Number((content[0] as { text: string }).text));
  assert.deepEqual(
    counts.sort((a, b) => a - b),
    TWENTY.map((_, at) => at + 1),
  );
  assert.equal(child.count('start'), 1);
});

test('when a child fails to start, all who wait for it are told why, and a later call starts it again', async (t) => {
  const child = new ChildServer(t);
  writeFileSync(child.path('down'), '');
  const { manager, clock } = managerOf(t, child.entry());
  const outcomes = await Promise.allSettled(TWENTY.map(() => manager.callTool('one', 'count')));
  for (const outcome of outcomes) {
    assert.ok(outcome.status === 'rejected' && outcome.reason instanceof GatewayError);
    assert.equal(outcome.reason.code, 'server_unavailable');
    assert.match(
      outcome.reason.message,
      /Server "one" exited with code 1; its last words: the server is down/,
    );
  }
  assert.equal(child.count('start'), 1);
  rmSync(child.path('down'));
  clock.advance(200);
  const answer = await manager.callTool('one', 'count');
  assert.deepEqual(answer.content, [{ type: 'text', text: '1' }]);
  assert.equal(child.count('start'), 2);
});

test('too soon after a failure nothing is tried, and the error says when it will be', async (t) => {
  const child = new ChildServer(t);
  writeFileSync(child.path('down'), '');
  const { manager, clock } = managerOf(t, child.entry());
  const call = () => manager.callTool('one', 'count').catch((failure: GatewayError) => failure);
  assert.match(String(await call()), /it is tried again in 150 ms at the earliest/);
  clock.advance(100);
  const early = await call();
  assert.ok(early instanceof GatewayError);
  assert.match(early.message, /exited with code 1.*; it is tried again in 50 ms at the earliest$/);
  assert.equal(early.details.retryAfterMs, 50);
  assert.equal(child.count('start'), 1);
  clock.advance(50);
  await call();
  assert.equal(child.count('start'), 2);
});

test('the pauses double up to five seconds, and begin anew once the server was there', async (t) => {
  let down = true;
  const greet = () => {
    if (down) throw new Error('not now');
  };
  const server = await serve(t, { greet, on: { 'tools/call': () => toolText('done') } });
  const { clock, of, agent } = await openGateway(t, { one: remote(server.url) });
  const tryOnce = async () => {
    await agent();
    clock.advance(of('server_connect_failed').at(-1)?.retryInMs ?? 0);
  };
  for (let at = 0; at < 8; at++) await tryOnce();
  const pauses = () => of('server_connect_failed').map(({ retryInMs }) => retryInMs);
  assert.deepEqual(pauses(), [150, 300, 600, 1200, 2400, 3750, 3750, 3750]);
  down = false;
  const known = await agent();
  server.forgetSessions();
  down = true;
  await known.call('any');
  assert.equal(pauses().at(-1), 150);
});

test('a server that says how long to wait is left alone that long', async (t) => {
  const server = await serve(t, {
    intercept: (_request, response) => {
      response.writeHead(503, { 'retry-after': '30' }).end();
      return true;
    },
  });
  const { agent, of } = await openGateway(t, { one: remote(server.url) });
  await agent();
  assert.equal(of('server_connect_failed')[0]?.retryInMs, 30_000);
});

test("a server's own refusal of initialize reaches the agent in the server's words", async (t) => {
  const greet = () => {
    throw new Refusal(-32602, 'Unsupported protocol version', { supported: ['2024-11-05'] });
  };
  const server = await serve(t, { greet });
  const { url } = await openGateway(t, { one: remote(server.url) });
  for (const at of [1, 2]) {
    const response = await fetch(url(), {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: at,
        method: 'initialize',
        params: { protocolVersion: 'x' },
      }),
    });
    const { id, error } = (await response.json()) as { id: number; error: object };
    assert.equal(id, at);
    assert.deepEqual(error, {
      code: -32602,
      message: 'Unsupported protocol version',
      data: { supported: ['2024-11-05'] },
    });
  }
  assert.equal(server.count('initialize'), 1);
});

test('a server that never answers initialize is given up in time, and its child does not stay', async (t) => {
  const child = new ChildServer(t);
  const { manager, clock } = managerOf(t, child.entry(['--mute'], { connectTimeoutMs: 5_000 }));
  const call = manager.callTool('one', 'count');
  await clock.armed((delayMs) => delayMs === 5_000);
  clock.advance(5_000);
  await assert.rejects(call, /Server "one" did not answer initialize within 5000 ms/);
  assert.deepEqual(child.pids().map(isAlive), [false]);
});

test('those who wait for a connection when it is closed are served by the next one', async (t) => {
  const greeting = new Held<void>();
  const server = await serve(t, { greet: greeting.next, on: { 'tools/call': () => toolText('done') } });
  const { manager } = managerOf(t, remote(server.url));
  const calls = Array.from({ length: 5 }, () => manager.callTool('one', 'any'));
  await greeting.received(1);
  await manager.close('one');
  await greeting.received(2);
  await greeting.answer();
  await greeting.answer();
  await Promise.all(calls);
  assert.equal(server.count('initialize'), 2);
  assert.equal(server.count('tools/call'), 5);
});

test('a listing that is under way when its server is closed is answered all the same', async (t) => {
  const listing = new Held<string>();
  const server = await serve(t, { on: { 'tools/list': listing.next } });
  const { manager } = managerOf(t, remote(server.url));
  const tools = manager.listTools('one');
  await listing.received(1);
  await manager.close('one');
  await listing.received(2);
  await listing.answer('{"tools":[]}');
  await listing.answer('{"tools":[{"name":"second","inputSchema":{}}]}');
  assert.deepEqual(
    (await tools).map(({ name }) => name),
    ['second'],
  );
});

test('a call that is under way when its server is closed is not sent again, and its error says what is not known', async (t) => {
  const calling = new Held<string>();
  const server = await serve(t, { on: { 'tools/call': calling.next } });
  const { manager } = managerOf(t, remote(server.url));
  const call = manager.callTool('one', 'any');
  await calling.received(1);
  const failed = assert.rejects(call, {
    code: 'outcome_unknown',
    message: 'The connection to "one" was closed; whether tools/call ran is not known',
  });
  await manager.close('one');
  await failed;
  assert.equal(server.count('tools/call'), 1);
  await calling.answer('{}');
});

test('everything can be closed while a server is still being waited for', async (t) => {
  const child = new ChildServer(t);
  const greeting = new Held<void>();
  const server = await serve(t, { greet: greeting.next });
  const events = new Happenings<GatewayEvent>();
  const manager = new McpManager(
    { mcpServers: { one: remote(server.url), two: child.entry(['--mute']) } },
    { emit: (event) => events.add(event) },
  );
  const waiting = [manager.listTools('one'), manager.listTools('two')];
  const failed = waiting.map((list) => assert.rejects(list, GatewayError));
  await greeting.received();
  await events.first(({ type }) => type === 'server_stderr');
  await manager.closeAll();
  await Promise.all(failed);
  assert.equal(manager.poolSize, 0);
  assert.deepEqual(child.pids().map(isAlive), [false]);
  await greeting.answer();
});
