import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../src/base/clock.js';
import { McpManager } from '../../src/index.js';
import { POST_HEADERS, TestAgent } from '../support/agent-gateway.js';
import { FakeClock } from '../support/fake-clock.js';
import { Held, serve } from '../support/manager-bench.js';
import { ChildServer, openGateway, passUntil, remote, settle, toolText } from '../support/pool-bench.js';
import { Happenings, isAlive } from '../support/stdio-harness.js';

/** Kinds of open things that a gateway makes. */
const MADE = new Set(['TCPSocketWrap', 'TCPServerWrap', 'ProcessWrap', 'PipeWrap', 'Timeout']);

function open(): number {
  return process.getActiveResourcesInfo().filter((kind) => MADE.has(kind)).length;
}

/** Waits until no more is open than before; what is left over for ever never ends. */
async function backTo(before: number): Promise<void> {
  while (open() > before) await new Promise(setImmediate);
}

/** An agent's socket that stays open, idle, behind one request. */
async function idleSocket(t: TestContext, url: string): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const sent = httpRequest(url, { method: 'POST', headers: POST_HEADERS, agent });
  sent.end('{"jsonrpc":"2.0","id":1,"method":"ping"}');
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
}

test('a gateway that is told to stop lets a call finish, ends streams and idle sockets, and leaves nothing open', async (t) => {
  const child = new ChildServer(t);
  const calling = new Held<string>();
  const server = await serve(t, { on: { 'tools/call': calling.next } });
  const before = open();
  const servers = { one: remote(server.url), two: child.entry([], { isolate: 'session' }) };
  const { gateway, url } = await openGateway(t, servers, { clock: systemClock });
  const [listening, busy, idle] = [
    await TestAgent.connect(url()),
    await TestAgent.connect(url(), { headers: { authorization: 'Bearer T' } }),
    await TestAgent.connect(url('two')),
  ];
  const stream = await listening.listen();
  await (await idle.call('count')).text();
  await idleSocket(t, url());
  const call = busy.call('slow');
  await calling.received();
  assert.equal(gateway.poolSize, 3);
  const drained = gateway.drain();
  assert.deepEqual(await stream.rest(), []);
  await calling.answer(toolText('done'));
  assert.match(await (await call).text(), /"done"/);
  await drained;
  assert.deepEqual([server.deleted, server.openSessions], [2, 0]);
  await server.until(() => server.openStreams === 0);
  assert.deepEqual(child.pids().map(isAlive), [false]);
  assert.deepEqual([gateway.sessions, gateway.poolSize], [0, 0]);
  await backTo(before);
});

test('a call that does not finish in time ends with an error, is withdrawn from its server, and keeps nobody waiting', async (t) => {
  const calling = new Held<string>();
  const server = await serve(t, { on: { 'tools/call': calling.next } });
  const settings = { shutdownMs: 5_000 };
  const { gateway, clock, agent } = await openGateway(t, { one: remote(server.url) }, { settings });
  const call = (await agent()).call('slow');
  await calling.received();
  const drained = gateway.drain();
  clock.advance(await clock.armed((delayMs) => delayMs === 4_000));
  const { answer } = await call;
  assert.match(answer.error?.message ?? '', /shutting down/);
  await settle(drained, clock);
  assert.equal(server.deleted, 1);
  assert.deepEqual(
    server.notifications.map(({ method }) => method),
    ['notifications/initialized', 'notifications/cancelled'],
  );
  await calling.answer('{}');
});

test('six children that ignore everything are ended side by side, within the time that one of them takes', async (t) => {
  const children = Array.from({ length: 6 }, () => new ChildServer(t));
  const ids = children.map((_, at) => `child-${at}`);
  const clock = new FakeClock();
  const manager = new McpManager(
    { mcpServers: Object.fromEntries(children.map((child, at) => [ids[at], child.entry(['--stubborn'])])) },
    { clock },
  );
  await Promise.all(ids.map((id) => manager.callTool(id, 'count')));
  const pids = children.flatMap((child) => child.pids());
  assert.equal(pids.filter(isAlive).length, 6);
  const closed = manager.closeAll();
  for (const graceMs of [2_000, 3_000]) {
    while (clock.delays.filter((delayMs) => delayMs === graceMs).length < 6) await new Promise(setImmediate);
    assert.equal(pids.filter(isAlive).length, 6);
    clock.advance(graceMs);
  }
  await closed;
  assert.equal(pids.filter(isAlive).length, 0);
});

test('six servers that never answer DELETE are waited for side by side', async (t) => {
  const deletes = new Happenings<string>();
  const servers = await Promise.all(
    Array.from({ length: 6 }, () =>
      serve(t, {
        intercept: ({ method }) => {
          if (method === 'DELETE') deletes.add(method);
          return method === 'DELETE';
        },
      }),
    ),
  );
  const ids = servers.map((_, at) => `server-${at}`);
  const clock = new FakeClock();
  const entries = servers.map((server, at) => [ids[at], remote(server.url)]);
  const manager = new McpManager({ mcpServers: Object.fromEntries(entries) }, { clock });
  await Promise.all(ids.map((id) => manager.listTools(id)));
  const closed = manager.closeAll();
  await deletes.first(() => deletes.all.length === 6);
  clock.advance(2_000);
  await closed;
});

test('every session of an agent, and every one that is just being ended, is ended by DELETE before the gateway is', async (t) => {
  const server = await serve(t);
  const { gateway, agent } = await openGateway(t, { one: remote(server.url, { isolate: 'session' }) });
  const agents = await Promise.all(Array.from({ length: 8 }, () => agent()));
  await agents[0]?.leave();
  await gateway.close();
  assert.equal(server.count('initialize'), 8);
  assert.equal(server.deleted, 8);
});

test('a gateway ends although a server has never answered initialize', async (t) => {
  const child = new ChildServer(t);
  const greeting = new Held<void>();
  const server = await serve(t, { greet: greeting.next });
  const servers = { one: remote(server.url), two: child.entry(['--mute']) };
  const { gateway, clock, agent, happened } = await openGateway(t, servers);
  const waiting = [agent().catch(() => {}), agent({}, 'two').catch(() => {})];
  await greeting.received();
  await happened('server_stderr');
  await settle(gateway.close(), clock);
  await Promise.all(waiting);
  assert.deepEqual(child.pids().map(isAlive), [false]);
  await greeting.answer();
});

test('a gateway that is closed while a server is to be tried again leaves it alone', async (t) => {
  const child = new ChildServer(t);
  const { gateway, clock, agent, happened } = await openGateway(t, { one: child.entry() });
  const one = await agent();
  await one.listen();
  process.kill(child.pids()[0] as number, 'SIGKILL');
  await happened('server_disconnected');
  await settle(gateway.close(), clock);
  let turns = 0;
  await passUntil(clock, () => turns++ > 100);
  assert.equal(child.count('start'), 1);
});
