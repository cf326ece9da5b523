import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Held, serve } from '../support/manager-bench.js';
import type { McpServer, McpServerOptions, ServerCall } from '../support/mcp-server.js';
import { errorOf, openGateway, passUntil, remote, says, textOf, toolText } from '../support/pool-bench.js';

const LIST_CHANGED = 'notifications/tools/list_changed';

/** A server whose tool tells the session it is called in. */
async function naming(t: TestContext, options: McpServerOptions = {}) {
  return await serve(t, { ...options, on: { 'tools/call': ({ session }: ServerCall) => toolText(session) } });
}

async function openCapped(t: TestContext, server: McpServer, entry: object = {}, settings: object = {}) {
  const bench = await openGateway(t, { one: remote(server.url, entry) }, { settings });
  /** An agent with a token whose connection was used just now. */
  const used = async (token: string, listening = false) => {
    const agent = await bench.agent({ token });
    if (listening) await agent.listen();
    bench.clock.advance(1);
    return { agent, session: textOf(await agent.call('which')) };
  };
  return { ...bench, used };
}

test('when all connections are idle, a newcomer takes the place of the one that is idle longest', async (t) => {
  const server = await naming(t);
  const { gateway, used, of } = await openCapped(t, server, { maxConnections: 3 });
  const [a, b, c] = [await used('A'), await used('B'), await used('C')];
  await a.agent.call('which');
  await used('D');
  assert.equal(server.deleted, 1);
  assert.equal(gateway.poolSize, 3);
  assert.deepEqual(
    of('server_disconnected').map(({ reason }) => reason),
    ['evicted'],
  );
  assert.equal(textOf(await a.agent.call('which')), a.session);
  assert.equal(textOf(await c.agent.call('which')), c.session);
  assert.notEqual(textOf(await b.agent.call('which')), b.session);
});

test('the general cap counts the connections of all servers, and takes from any of them', async (t) => {
  const [first, second] = [await naming(t), await naming(t)];
  const servers = { one: remote(first.url), two: remote(second.url) };
  const bench = await openGateway(t, servers, { settings: { maxConnections: 2 } });
  await bench.agent({ token: 'A' });
  bench.clock.advance(1);
  await bench.agent({ token: 'A' }, 'two');
  bench.clock.advance(1);
  await bench.agent({ token: 'B' }, 'two');
  assert.deepEqual([first.deleted, second.deleted, bench.gateway.poolSize], [1, 0, 2]);
});

test('a connection that agents listen on makes room too, but only where no other can', async (t) => {
  const server = await naming(t);
  const { used } = await openCapped(t, server, { maxConnections: 3 });
  const listening = await used('A', true);
  const silent = [await used('B'), await used('C')];
  await used('D', true);
  await used('E', true);
  assert.equal(textOf(await listening.agent.call('which')), listening.session);
  for (const { agent, session } of silent) assert.notEqual(textOf(await agent.call('which')), session);
});

test('three idle connections that agents listen on lock nobody out', async (t) => {
  const server = await naming(t);
  const { gateway, used } = await openCapped(t, server, { maxConnections: 3 });
  const { agent } = await used('A', true);
  await used('B', true);
  await used('C', true);
  await used('D');
  assert.equal(gateway.poolSize, 3);
  assert.equal(server.deleted, 1);
  assert.deepEqual(agent.general, []);
  await agent.call('which');
  await agent.until(() => agent.general.some(says(LIST_CHANGED)));
});

test('an agent that lost its connection to another listens again once there is room, and costs nobody theirs', async (t) => {
  const server = await naming(t);
  const settings = { connectionIdleMs: 60_000 };
  const { clock, used, of } = await openCapped(t, server, { maxConnections: 1 }, settings);
  const { agent: listener } = await used('A', true);
  const held = await used('B', true);
  assert.equal(of('server_disconnected').length, 1);
  for (const delayMs of [750, 1500, 3000]) clock.advance(await clock.armed((armed) => armed === delayMs));
  assert.equal(textOf(await held.agent.call('which')), held.session);
  await held.agent.leave();
  await passUntil(clock, () => of('server_connected').length === 3);
  await listener.until(() => listener.general.some(says(LIST_CHANGED)));
});

test('while every connection is in use, a newcomer is told to come back, and then gets one', async (t) => {
  const calling = new Held<string>();
  const server = await serve(t, { on: { 'tools/call': calling.next } });
  const { agent, url } = await openGateway(t, { one: remote(server.url, { maxConnections: 2 }) });
  const busy = [await agent({ token: 'A' }), await agent({ token: 'B' })];
  const calls = busy.map((one) => one.call('slow'));
  await calling.received(2);
  const refused = await fetch(url(), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: 'Bearer C',
    },
    body: '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}',
  });
  assert.equal(refused.status, 503);
  assert.equal(refused.headers.get('retry-after'), '1');
  const text = await refused.text();
  const error = errorOf({ text, answer: JSON.parse(text) });
  assert.equal(error.data.code, 'at_capacity');
  assert.match(error.message, /All 2 connections that server "one" may have are in use; try again later/);
  for (const call of calls) {
    await calling.answer(toolText('done'));
    await call;
  }
  assert.notEqual((await agent({ token: 'C' })).session, '');
  assert.equal(server.count('initialize'), 3);
});

test('a session that an agent has to itself is never given to another, idle or not', async (t) => {
  const server = await naming(t);
  const { used, agent } = await openCapped(t, server, { maxConnections: 2, isolate: 'session' });
  const owners = [await used('A'), await used('A')];
  assert.equal((await agent({ token: 'B' })).session, '');
  for (const owner of owners) assert.equal(textOf(await owner.agent.call('which')), owner.session);
  await owners[0]?.agent.leave();
  assert.notEqual((await agent({ token: 'B' })).session, '');
});

const ENDINGS: Readonly<Record<string, McpServerOptions['intercept']>> = {
  'ends it': () => false,
  'answers 405': (request, response) => {
    if (request.method !== 'DELETE') return false;
    response.writeHead(405).end();
    return true;
  },
  'never answers': (request) => request.method === 'DELETE',
};
for (const [what, intercept] of Object.entries(ENDINGS))
  test(`an idle connection is ended by DELETE, and made anew for the next request, when the server ${what}`, async (t) => {
    let deletes = 0;
    const server = await naming(t, {
      intercept: (request, response) => {
        if (request.method === 'DELETE') deletes++;
        return intercept?.(request, response) ?? false;
      },
    });
    const settings = { connectionIdleMs: 60_000 };
    const { gateway, clock, used, happened, of } = await openCapped(t, server, {}, settings);
    const { agent, session } = await used('A');
    clock.advance(59_000);
    assert.equal(gateway.poolSize, 1);
    clock.advance(16_000);
    await happened('server_disconnected');
    assert.equal(of('server_disconnected')[0]?.reason, 'idle');
    assert.equal(gateway.poolSize, 0);
    assert.notEqual(textOf(await agent.call('which')), session);
    assert.equal(deletes, 1);
    clock.advance(2_000);
  });

test('a newcomer does not wait for ever for the end of the connection that makes room', async (t) => {
  const server = await naming(t, { intercept: (request) => request.method === 'DELETE' });
  const { clock, used, happened, agent } = await openCapped(t, server, { maxConnections: 1 });
  await used('A');
  const newcomer = agent({ token: 'B' });
  await happened('server_disconnected');
  clock.advance(await clock.armed((delayMs) => delayMs === 2_000));
  assert.notEqual((await newcomer).session, '');
});

test('a connection is not idle while an agent listens', async (t) => {
  const server = await naming(t);
  const { gateway, clock, used, of } = await openCapped(t, server, {}, { connectionIdleMs: 60_000 });
  const { agent } = await used('A', true);
  await server.until(() => server.openStreams === 1);
  clock.advance(600_000);
  assert.equal(gateway.poolSize, 1);
  server.broadcast(LIST_CHANGED);
  await agent.until(() => agent.general.some(says(LIST_CHANGED)));
  await agent.leave();
  await passUntil(clock, () => of('server_disconnected').length === 1);
  await server.until(() => server.deleted === 1);
});
