import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Exchange } from '../../src/pipeline/exchange.js';
import { serve } from '../support/manager-bench.js';
import { Refusal, type ServerCall } from '../support/mcp-server.js';
import {
  caller,
  exchange,
  localAgent,
  openCore,
  openGateway,
  passUntil,
  remote,
  says,
  textOf,
  toolText,
} from '../support/pool-bench.js';

const URI = 'file:///watched';

/** A server that notes who subscribes to what, and whose tool tells by whom it is called. */
async function noting(t: TestContext, refused: ReadonlySet<string> = new Set()) {
  const noted: string[] = [];
  const whose = ({ headers }: ServerCall) => headers.authorization?.replace('Bearer ', '') ?? 'nobody';
  const note = (call: ServerCall) => {
    const { method, params } = call.message;
    noted.push([whose(call), method, params.uri ?? params.level].join(' '));
    return '{}';
  };
  const server = await serve(t, {
    intercept: ({ headers }, response) => {
      if (!refused.has(headers.authorization?.replace('Bearer ', '') ?? '')) return false;
      response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end();
      return true;
    },
    on: {
      'resources/subscribe': note,
      'resources/unsubscribe': note,
      'logging/setLevel': note,
      'tools/call': (call) => toolText(whose(call)),
    },
  });
  return { server, noted };
}

test('an agent whose token changes keeps its session, and takes along what it asked to be told', async (t) => {
  const { server, noted } = await noting(t);
  const bench = await openGateway(t, { one: remote(server.url) });
  const agent = await bench.agent({ token: 'T1' });
  await agent.listen();
  await agent.request('resources/subscribe', JSON.stringify({ uri: URI }));
  await agent.request('logging/setLevel', '{"level":"warning"}');
  const { session } = agent;
  agent.token = 'T2';
  assert.equal(textOf(await agent.call('whose')), 'T2');
  assert.equal(agent.session, session);
  await server.until(() => noted.length === 5);
  assert.deepEqual(noted.slice(2).sort(), [
    `T1 resources/unsubscribe ${URI}`,
    'T2 logging/setLevel warning',
    `T2 resources/subscribe ${URI}`,
  ]);
  server.broadcast('notifications/resources/updated', { uri: URI });
  await agent.until(() => agent.general.some(says('notifications/resources/updated')));
  assert.equal(agent.general.filter(says('notifications/resources/updated')).length, 1);
});

test('what another agent with the old token asked to be told stays', async (t) => {
  const { server, noted } = await noting(t);
  const bench = await openGateway(t, { one: remote(server.url) });
  const [moving, staying] = [await bench.agent({ token: 'T1' }), await bench.agent({ token: 'T1' })];
  for (const agent of [moving, staying])
    await agent.request('resources/subscribe', JSON.stringify({ uri: URI }));
  moving.token = 'T2';
  await moving.call('whose');
  await server.until(() => noted.includes(`T2 resources/subscribe ${URI}`));
  assert.ok(!noted.some((line) => line.includes('unsubscribe')));
});

test('an agent that comes to a connection which stands is heard there at once', async (t) => {
  const { server, noted } = await noting(t);
  const bench = await openGateway(t, { one: remote(server.url) });
  const [moving, there] = [await bench.agent({ token: 'T1' }), await bench.agent({ token: 'T2' })];
  await moving.request('resources/subscribe', JSON.stringify({ uri: URI }));
  await moving.request('logging/setLevel', '{"level":"warning"}');
  await there.request('logging/setLevel', '{"level":"error"}');
  moving.token = 'T2';
  await moving.call('whose');
  await server.until(() => noted.length === 6);
  assert.deepEqual(noted.slice(3).sort(), [
    `T1 resources/unsubscribe ${URI}`,
    'T2 logging/setLevel warning',
    `T2 resources/subscribe ${URI}`,
  ]);
  assert.equal(server.count('initialize'), 2);
});

test('a refused token reaches its agent as the status and challenge that the server sent, and a new one works', async (t) => {
  const refused = new Set<string>();
  const { server } = await noting(t, refused);
  const bench = await openGateway(t, { one: remote(server.url) });
  const agent = await bench.agent({ token: 'T1' });
  assert.equal(textOf(await agent.call('whose')), 'T1');
  refused.add('T1');
  for (let at = 0; at < 2; at++) {
    const { status, headers, answer } = await agent.call('whose');
    assert.equal(status, 401);
    assert.equal(headers.get('www-authenticate'), 'Bearer error="invalid_token"');
    assert.match(answer.error?.message ?? '', /Server "one" refused the credential \(401\)/);
  }
  agent.token = 'T2';
  assert.equal(textOf(await agent.call('whose')), 'T2');
  await bench.happened('server_disconnected');
  assert.match(bench.of('server_disconnected')[0]?.pool ?? '', /^one#/);
  assert.equal(bench.gateway.poolSize, 1);
});

test('a token that is refused from the start gets the challenge too, and not one more attempt than is made', async (t) => {
  const { server } = await noting(t, new Set(['bad']));
  const bench = await openGateway(t, { one: remote(server.url) });
  const post = () =>
    fetch(bench.url(), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: 'Bearer bad',
      },
      body: '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}',
    });
  for (let at = 0; at < 3; at++) {
    const response = await post();
    assert.equal(response.status, 401);
    assert.equal(response.headers.get('www-authenticate'), 'Bearer error="invalid_token"');
    assert.ok(!(await response.text()).includes('bad'));
  }
  assert.equal(bench.of('server_connect_failed').length, 1);
});

test("a refused credential of the operator's is no challenge for the agent, who cannot bring a better one", async (t) => {
  const { server } = await noting(t, new Set(['of-the-operator']));
  const headers = { Authorization: 'Bearer of-the-operator' };
  const bench = await openGateway(t, { one: remote(server.url, { headers }) });
  const response = await fetch(bench.url(), {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}',
  });
  const text = await response.text();
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('www-authenticate'), null);
  assert.match(text, /refused the credential \(401\), which is the one that the gateway is configured with/);
  assert.ok(!text.includes('of-the-operator'));
});

/** A core, and an agent in it that can take any token. */
function rotating(t: TestContext, url: string, more: object = {}) {
  const bench = openCore(t, { one: remote(url, more) });
  const agent = localAgent('rotating');
  const call = (token: string, of = agent) => {
    const sent: Exchange = exchange(of, caller(token), 'tools/call', { name: 'whose' });
    return bench.core.handle(sent);
  };
  return { ...bench, agent, call };
}

test('many tokens in turn leave as many connections as are allowed, and no more is remembered', async (t) => {
  const { server } = await noting(t);
  const { core, clock, call } = rotating(t, server.url, { maxConnections: 4 });
  const rounds = 200;
  for (let at = 0; at < rounds; at++) await call(`token-${at}`);
  assert.equal(core.pool.size, 4);
  assert.equal(core.pool.keys, 4);
  await passUntil(clock, () => server.openSessions === 4);
  assert.equal(server.deleted, rounds - 4);
});

test('ten thousand tokens that all fail leave next to nothing', async (t) => {
  const gone = await serve(t);
  const { url } = gone;
  await gone.close();
  const { core, call } = rotating(t, url);
  for (let at = 0; at < 10_000; at += 50)
    await Promise.all(
      Array.from({ length: 50 }, (_, more) =>
        assert.rejects(call(`token-${at + more}`), /Server "one" cannot be reached/),
      ),
    );
  assert.equal(core.pool.size, 0);
  assert.ok(core.pool.keys <= 101, String(core.pool.keys));
});

test('what is remembered of a failed token is enough to hold the next attempt back', async (t) => {
  const { server } = await noting(t, new Set(['bad']));
  const { core, clock, agent, call, of } = rotating(t, server.url);
  await assert.rejects(call('bad'), { code: 'unauthorized' });
  core.pool.leave(agent);
  await assert.rejects(call('bad', localAgent('another')), { code: 'unauthorized' });
  assert.equal(of('server_connect_failed').length, 1);
  clock.advance(150);
  await assert.rejects(call('bad', localAgent('a third')), { code: 'unauthorized' });
  assert.equal(of('server_connect_failed').length, 2);
});

test('a session that belongs to one agent ends with the agent, under each token that it had', async (t) => {
  const { server } = await noting(t);
  const { core, agent, call } = rotating(t, server.url, { isolate: 'session' });
  for (const token of ['T1', 'T2', 'T3']) await call(token);
  await call('T1', localAgent('another'));
  assert.equal(server.openSessions, 4);
  core.pool.leave(agent);
  await server.until(() => server.deleted === 3);
  assert.equal(core.pool.size, 1);
});

test('a server that refuses a request with an error of its own keeps its connection', async (t) => {
  const server = await serve(t, {
    on: {
      'tools/call': () => {
        throw new Refusal(-32602, 'Unknown tool');
      },
    },
  });
  const { core, call } = rotating(t, server.url);
  for (let at = 0; at < 3; at++) assert.equal((await call('T1')).kind, 'error');
  assert.equal(server.count('initialize'), 1);
  assert.equal(core.pool.size, 1);
});
