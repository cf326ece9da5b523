import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../src/base/clock.js';
import { McpManager, poolKey } from '../../src/index.js';
import { remote, serve } from '../support/manager-bench.js';
import type { ServerCall } from '../support/mcp-server.js';
import { ChildServer, caller, openGateway, textOf, toolText } from '../support/pool-bench.js';
import { Happenings, isAlive } from '../support/stdio-harness.js';

const naming = (t: TestContext) =>
  serve(t, { on: { 'tools/call': ({ session }: ServerCall) => toolText(session) } });

test('the upstream session of an agent ends with DELETE when the agent ends its own', async (t) => {
  const server = await naming(t);
  const { agent, gateway } = await openGateway(t, { one: remote(server.url, { isolate: 'session' }) });
  const [first, second] = [await agent(), await agent()];
  await first.listen();
  await first.leave();
  await server.until(() => server.deleted === 1);
  assert.equal(gateway.poolSize, 1);
  textOf(await second.call('which'));
  assert.equal(server.openSessions, 1);
});

test('the child of an agent ends with the session of the agent', async (t) => {
  const child = new ChildServer(t);
  const { agent, gateway, happened } = await openGateway(
    t,
    { one: child.entry([], { isolate: 'session' }) },
    { clock: systemClock },
  );
  const agents = [await agent(), await agent(), await agent()];
  const pids = await Promise.all(agents.map(async (one) => Number(textOf(await one.call('pid')))));
  assert.equal(new Set(pids).size, 3);
  await agents[1]?.leave();
  await happened('server_disconnected');
  await gateway.close();
  assert.deepEqual(pids.map(isAlive), [false, false, false]);
  assert.equal(child.count('start'), 3);
});

test('a session that is ended while a request of it is still being read makes no connection any more', async (t) => {
  const server = await naming(t);
  const { agent, gateway, url } = await openGateway(t, { one: remote(server.url, { isolate: 'session' }) });
  const one = await agent();
  const late = httpRequest(url(), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      expect: '100-continue',
      'mcp-session-id': one.session,
    },
  });
  late.flushHeaders();
  await once(late, 'continue');
  await one.leave();
  late.end('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"which"}}');
  const [response] = await once(late, 'response');
  response.resume();
  await once(response, 'end');
  assert.equal(server.count('initialize'), 1);
  assert.equal(server.count('tools/call'), 0);
  assert.equal(gateway.poolSize, 0);
});

test('to close a server ends its connections and those of no server whose id begins alike', async (t) => {
  const [one, oneX] = [await naming(t), await naming(t)];
  const manager = new McpManager({ mcpServers: { one: remote(one.url), oneX: remote(oneX.url) } });
  t.after(() => manager.closeAll());
  for (const token of [undefined, 'A', 'B']) {
    await manager.callTool('one', 'which', {}, { token });
    await manager.callTool('oneX', 'which', {}, { token });
  }
  assert.equal(manager.poolSize, 6);
  await manager.close('one');
  assert.deepEqual([one.deleted, oneX.deleted, manager.poolSize], [3, 0, 3]);
  await manager.callTool('one', 'which');
  assert.equal(manager.poolSize, 4);
});

test('to close a full pool key, or the short form that is shown, ends the connection of that token only', async (t) => {
  const server = await naming(t);
  const events = new Happenings<{ type: string; pool?: string }>();
  const manager = new McpManager(
    { mcpServers: { one: remote(server.url) } },
    { emit: (event) => events.add(event) },
  );
  t.after(() => manager.closeAll());
  const call = async (token: string) => {
    const { content } = await manager.callTool('one', 'which', {}, { token });
    return (content[0] as { text: string }).text;
  };
  const sessions = { A: await call('A'), B: await call('B') };
  await manager.close(poolKey('one', caller('A').tokenHash));
  assert.equal(await call('B'), sessions.B);
  assert.notEqual(await call('A'), sessions.A);
  const shownB = events.all.filter(({ type }) => type === 'server_connected')[1]?.pool ?? '';
  await manager.close(shownB);
  assert.notEqual(await call('B'), sessions.B);
  assert.equal(server.deleted, 2);
});

test('when everything is closed no connection is left, and none is made again', async (t) => {
  const child = new ChildServer(t);
  const server = await naming(t);
  const manager = new McpManager({ mcpServers: { one: remote(server.url), two: child.entry() } });
  for (const token of ['A', 'B']) await manager.callTool('one', 'which', {}, { token });
  await manager.callTool('two', 'count');
  await manager.closeAll();
  assert.equal(manager.poolSize, 0);
  assert.equal(server.openSessions, 0);
  assert.deepEqual(child.pids().map(isAlive), [false]);
  await assert.rejects(manager.callTool('two', 'count'), { code: 'shutting_down' });
  assert.equal(child.count('start'), 1);
});
