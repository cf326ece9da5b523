import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { callText, type TestAgent } from '../support/agent-gateway.js';
import type { Incoming } from '../support/agent-http.js';
import { ChannelServer } from '../support/channel-server.js';
import { FakeClock } from '../support/fake-clock.js';
import { type Forwarding, forwarding, PATIENCE, responseOf, restOf } from '../support/forwarding.js';
import { McpServer } from '../support/mcp-server.js';

const TOOLS = 'notifications/tools/list_changed';
const PROMPTS = 'notifications/prompts/list_changed';
/** Least time between two notices to one agent, in milliseconds. */
const WINDOW = 250;
const END = 'notifications/vendor/end';

interface Bench {
  readonly server: McpServer;
  readonly bench: Forwarding;
  readonly clock: FakeClock;
}

async function start(t: TestContext, on: McpServer['on'] = {}, entry = {}): Promise<Bench> {
  const clock = new FakeClock();
  const server = await McpServer.start({ on });
  const servers = { one: { url: server.url, ...entry } };
  return { server, clock, bench: await forwarding(t, { servers, behind: [server], clock }) };
}

const call = (agent: TestAgent) => agent.open(callText('x'));

async function list(agent: TestAgent): Promise<string[]> {
  const answer = await responseOf(agent.open('{"jsonrpc":"2.0","id":1,"method":"tools/list"}'));
  return answer.result.tools.map(({ name }: { name: string }) => name);
}

/** Methods that a stream brings up to one that ends the listening. */
async function heardUntil(stream: Incoming, end: string): Promise<string[]> {
  const heard: string[] = [];
  for (let message = await stream.message(); message; message = await stream.message()) {
    if (message.method === end) return heard;
    heard.push(message.method ?? 'response');
  }
  throw new Error('The stream ended');
}

/** A server whose list can be changed. */
function changingTools() {
  const names = ['old'];
  return { names, list: () => JSON.stringify({ tools: names.map((name) => ({ name, inputSchema: {} })) }) };
}

test(
  'a notice on a call’s own stream: what was cached is gone by then, its agent hears it there, others elsewhere',
  PATIENCE,
  async (t) => {
    const tools = changingTools();
    const { server, bench } = await start(t, {
      'tools/list': tools.list,
      'tools/call': ({ notify }) => {
        tools.names.push('new');
        notify(TOOLS);
        return '{"content":[]}';
      },
    });
    const [a, b] = [await bench.listener(), await bench.listener()];
    assert.deepEqual(await list(a.agent), ['old']);
    assert.deepEqual(await list(b.agent), ['old']);
    const stream = await call(a.agent);
    assert.equal((await stream.message())?.method, TOOLS);
    assert.deepEqual(await list(a.agent), ['old', 'new']);
    assert.equal((await restOf(stream)).length, 1);
    assert.equal((await b.stream.message())?.method, TOOLS);
    assert.deepEqual(await list(b.agent), ['old', 'new']);
    assert.equal(server.count('tools/list'), 2);
    await a.agent.send({ method: 'DELETE' });
    assert.deepEqual(await a.stream.rest(), []);
  },
);

test(
  'a notice on the general stream is told to every agent, and the next list asks the server',
  PATIENCE,
  async (t) => {
    const tools = changingTools();
    const { server, bench } = await start(t, { 'tools/list': tools.list });
    const agents = [await bench.listener(), await bench.listener()];
    await server.until(() => server.openStreams === 1);
    await list((agents[0] as { agent: TestAgent }).agent);
    tools.names.splice(0, 1, 'other');
    server.broadcast(TOOLS);
    for (const { agent, stream } of agents) {
      assert.equal((await stream.message())?.method, TOOLS);
      assert.deepEqual(await list(agent), ['other']);
    }
    assert.equal(server.count('tools/list'), 2);
  },
);

test(
  'stdio: a notice is told to every agent with a stream, and to others when they open one',
  PATIENCE,
  async (t) => {
    const server = await ChannelServer.start('stdio');
    const bench = await forwarding(t, { servers: { one: server.entry }, behind: [server] });
    const [loud, quiet] = [await bench.listener(), await bench.agent()];
    for (const method of [TOOLS, PROMPTS]) server.notify(method);
    for (const method of [TOOLS, PROMPTS]) assert.equal((await loud.stream.message())?.method, method);
    const late = await quiet.listen();
    for (const method of [TOOLS, PROMPTS]) assert.equal((await late.message())?.method, method);
  },
);

const burst = (times: number): McpServer['on'] => ({
  'tools/call': ({ notify }) => {
    for (let n = 0; n < times; n++) notify(TOOLS, { _meta: { n } });
    return '{"content":[]}';
  },
});

test(
  'of a burst within a call an agent with a general stream is told twice, and no list is asked for',
  PATIENCE,
  async (t) => {
    const { server, bench, clock } = await start(t, burst(200));
    const { agent, stream } = await bench.listener();
    await server.until(() => server.openStreams === 1);
    assert.deepEqual(
      (await restOf(await call(agent))).map(({ params }) => params?._meta.n),
      [0, undefined],
    );
    clock.advance(WINDOW);
    assert.equal((await stream.message())?.params._meta.n, 199);
    server.broadcast(END);
    clock.advance(10 * WINDOW);
    assert.deepEqual(await heardUntil(stream, END), []);
    assert.equal(server.count('tools/list'), 0);
  },
);

test(
  'an agent without a general stream hears the last notice of a burst before the answer',
  PATIENCE,
  async (t) => {
    const { bench, clock } = await start(t, burst(200));
    const agent = await bench.agent();
    const heard = await restOf(await call(agent));
    assert.deepEqual(
      heard.map(({ params }) => params?._meta.n),
      [0, 199, undefined],
    );
    assert.ok(!clock.delays.includes(WINDOW));
  },
);

test('each agent of several is told of a burst for itself', PATIENCE, async (t) => {
  const { server, bench, clock } = await start(t);
  const agents = [await bench.listener(), await bench.listener(), await bench.listener()];
  await server.until(() => server.openStreams === 1);
  for (let n = 0; n < 200; n++) server.broadcast(TOOLS, { _meta: { n } });
  server.broadcast(END);
  await bench.dropped(END);
  clock.advance(WINDOW);
  for (const { stream } of agents)
    for (const n of [0, 199]) assert.equal((await stream.message())?.params._meta.n, n);
});

test(
  'a server that announces a change with every list is told of once a window, however its agent hurries',
  PATIENCE,
  async (t) => {
    const { server, bench, clock } = await start(t, {
      'tools/list': ({ notify }) => {
        notify(TOOLS);
        return '{"tools":[]}';
      },
    });
    const { agent, stream } = await bench.listener();
    await server.until(() => server.openStreams === 1);
    const first = await restOf(agent.open('{"jsonrpc":"2.0","id":1,"method":"tools/list"}'));
    assert.deepEqual(
      first.map(({ method }) => method),
      [TOOLS, undefined],
    );
    for (let window = 1; window <= 10; window++) {
      for (let lists = 0; lists < 5; lists++) await list(agent);
      server.broadcast(END);
      assert.deepEqual(await heardUntil(stream, END), [], `in window ${window}`);
      clock.advance(WINDOW);
      assert.equal((await stream.message())?.method, TOOLS);
    }
    assert.equal(server.count('tools/list'), 51);
  },
);

test(
  'a server that announces changes for ever is told of at its agents’ pace, its last word included',
  PATIENCE,
  async (t) => {
    const { server, bench, clock } = await start(t);
    const { stream } = await bench.listener();
    await server.until(() => server.openStreams === 1);
    const heard: unknown[] = [];
    for (let n = 1; n <= 60; n++) {
      server.broadcast(TOOLS, { _meta: { n } });
      server.broadcast(END);
      for (let message = await stream.message(); message?.method !== END; message = await stream.message())
        heard.push(message?.params._meta.n);
      clock.advance(100);
    }
    clock.advance(WINDOW);
    server.broadcast(END);
    for (let message = await stream.message(); message?.method !== END; message = await stream.message())
      heard.push(message?.params._meta.n);
    assert.equal(heard.at(-1), 60);
    assert.ok(heard.length <= 1 + Math.ceil(6_000 / WINDOW), `${heard.length} notices in 6 s`);
    assert.ok(heard.length >= 6_000 / (2 * WINDOW), `${heard.length} notices in 6 s`);
  },
);

test('notices of different lists do not wait for each other', PATIENCE, async (t) => {
  const { server, bench } = await start(t);
  const { stream } = await bench.listener();
  await server.until(() => server.openStreams === 1);
  for (const method of [TOOLS, PROMPTS, TOOLS, 'notifications/resources/list_changed'])
    server.broadcast(method);
  server.broadcast(END);
  assert.deepEqual(await heardUntil(stream, END), [TOOLS, PROMPTS, 'notifications/resources/list_changed']);
});

test('an agent without a general stream is told of each list once when it opens one', PATIENCE, async (t) => {
  const { server, bench, clock } = await start(t);
  const [loud, quiet] = [await bench.listener(), await bench.agent()];
  await server.until(() => server.openStreams === 1);
  for (let n = 0; n < 5; n++) for (const method of [TOOLS, PROMPTS]) server.broadcast(method);
  server.broadcast(END);
  await bench.dropped(END);
  clock.advance(WINDOW);
  const stream = await quiet.listen();
  const two = [(await stream.message())?.method, (await stream.message())?.method];
  assert.deepEqual(two.sort(), [PROMPTS, TOOLS]);
  await loud.agent.send({ method: 'DELETE' });
  server.broadcast(END);
  assert.deepEqual(await heardUntil(stream, END), []);
});

test('an agent that leaves takes its waiting notices along', PATIENCE, async (t) => {
  const { server, bench, clock } = await start(t);
  const { agent, stream } = await bench.listener();
  await server.until(() => server.openStreams === 1);
  for (let n = 0; n < 2; n++) server.broadcast(TOOLS);
  server.broadcast(END);
  await heardUntil(stream, END);
  assert.ok(clock.delays.includes(WINDOW));
  await agent.send({ method: 'DELETE' });
  assert.ok(!clock.delays.includes(WINDOW));
});

test(
  'an agent that moves to another connection is told there what it was still to be told',
  PATIENCE,
  async (t) => {
    const { server, bench, clock } = await start(t, { ping: () => '{}' }, { forwardAuthorization: true });
    const { agent, stream } = await bench.listener({ headers: { authorization: 'Bearer first' } });
    await server.until(() => server.openStreams === 1);
    for (let n = 0; n < 3; n++) server.broadcast(TOOLS, { _meta: { n } });
    server.broadcast(END);
    await heardUntil(stream, END);
    agent.headers['authorization'] = 'Bearer second';
    await agent.post('{"jsonrpc":"2.0","id":1,"method":"ping"}');
    assert.equal(server.initialized.length, 2);
    clock.advance(WINDOW);
    assert.equal((await stream.message())?.params._meta.n, 2);
  },
);

test(
  'a server that comes back is told of once, though it announces its changes itself',
  PATIENCE,
  async (t) => {
    const { server, bench, clock } = await start(t, { ping: () => '{}' });
    const { agent, stream } = await bench.listener();
    await server.until(() => server.openStreams === 1);
    server.forgetSessions();
    await agent.post('{"jsonrpc":"2.0","id":1,"method":"ping"}');
    assert.equal(server.initialized.length, 2);
    for (const method of [TOOLS, PROMPTS, 'notifications/resources/list_changed'])
      assert.equal((await stream.message())?.method, method);
    await server.until(() => server.openStreams === 1);
    server.broadcast(TOOLS);
    server.broadcast(END);
    assert.deepEqual(await heardUntil(stream, END), []);
    clock.advance(WINDOW);
    assert.equal((await stream.message())?.method, TOOLS);
  },
);
