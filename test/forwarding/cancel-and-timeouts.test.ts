import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { callText, codeOf, gate, POST_HEADERS, type TestAgent } from '../support/agent-gateway.js';
import { begin, open } from '../support/agent-http.js';
import { type ChannelKind, ChannelServer } from '../support/channel-server.js';
import { FakeClock } from '../support/fake-clock.js';
import { type Forwarding, forwarding, PATIENCE, responseOf } from '../support/forwarding.js';
import { HeldCalls } from '../support/held-calls.js';
import { answering, HttpUpstream, JSON_BODY } from '../support/http-upstream.js';
import { McpServer } from '../support/mcp-server.js';

const CHANNELS: readonly ChannelKind[] = ['stdio', 'sse'];
const CANCELLED = 'notifications/cancelled';
const METHODS = [
  'tools/call',
  'prompts/get',
  'completion/complete',
  'resources/read',
  'tools/list',
  'prompts/list',
  'vendor/long',
];
/** The id of the request `"a/1"`, in another spelling of it. */
const cancelText = (id: string) =>
  `{ "jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"\\u0065nough","requestId":${id},"_meta":{"n":1.0,"a":[]}}, "x":0 }`;

async function onChannel(t: TestContext, kind: ChannelKind): Promise<[ChannelServer, Forwarding]> {
  const server = await ChannelServer.start(kind);
  return [server, await forwarding(t, { servers: { one: server.entry }, behind: [server] })];
}

/** A server whose answers never come. */
async function silentHttp(t: TestContext): Promise<[HttpUpstream, Forwarding]> {
  const server = await HttpUpstream.start();
  server.serveSessions('/mcp', () => {});
  t.after(() => server.stop());
  return [server, await forwarding(t, { servers: { one: { url: server.url(), type: 'http' } } })];
}

for (const kind of CHANNELS)
  test(
    `${kind}: a cancellation reaches the server with the server’s id and every other byte as it was`,
    PATIENCE,
    async (t) => {
      const [server, bench] = await onChannel(t, kind);
      const agent = await bench.agent();
      for (const [at, method] of METHODS.entries()) {
        server.on[method] = () => undefined;
        const pending = agent.open(`{"jsonrpc":"2.0","id":"a\\/1","method":"${method}","params":{}}`);
        await server.until(() => server.count(method) === 1);
        await agent.post(cancelText('"\\u0061/1"'));
        await server.until(() => server.count(CANCELLED) === at + 1);
        const [request] = server.of(method);
        assert.equal(server.raw.at(-1), cancelText(String(request?.id)), method);
        assert.equal(await (await pending).message(), undefined);
      }
    },
  );

test(
  'http: a cancellation reaches the server with the server’s id and every other byte as it was',
  PATIENCE,
  async (t) => {
    const [server, bench] = await silentHttp(t);
    const agent = await bench.agent();
    for (const [at, method] of METHODS.entries()) {
      const pending = agent.open(`{"jsonrpc":"2.0","id":"a\\/1","method":"${method}","params":{}}`);
      const request = await server.received(method);
      await agent.post(cancelText('"\\u0061/1"'));
      const told = await server.received(CANCELLED, at + 1);
      assert.equal(told.body, cancelText(String(request.json.id)), method);
      assert.equal(told.headers['mcp-session-id'], request.headers['mcp-session-id']);
      assert.equal(await (await pending).message(), undefined);
    }
  },
);

for (const kind of CHANNELS)
  test(
    `${kind}: a list that several wait for is cancelled when the last of them cancels`,
    PATIENCE,
    async (t) => {
      const [server, bench] = await onChannel(t, kind);
      server.on['tools/list'] = () => undefined;
      const agents = [await bench.agent(), await bench.agent(), await bench.agent()];
      const lists = agents.map((agent, id) =>
        agent.open(`{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`),
      );
      await bench.events.first(
        () => bench.events.all.filter(({ type }) => type === 'cache_outcome').length === 3,
      );
      for (const [id, agent] of agents.entries()) {
        assert.equal(server.count(CANCELLED), 0);
        await agent.post(cancelText(String(id)));
        assert.equal(await (await lists[id])?.message(), undefined);
      }
      await server.until(() => server.count(CANCELLED) === 1);
      assert.deepEqual(server.of(CANCELLED)[0]?.params.requestId, server.of('tools/list')[0]?.id);
      assert.equal(server.count('tools/list'), 1);
    },
  );

test('a cancellation of nothing, or of what is answered, stops at the gateway', PATIENCE, async (t) => {
  const [server, bench] = await onChannel(t, 'stdio');
  const [agent, other] = [await bench.agent(), await bench.agent()];
  const held = new HeldCalls(server);
  const { answer } = await held.begin(agent, 'x', '1');
  for (const id of ['2', '"1"', '1.0', 'null', '[]']) await agent.post(cancelText(id));
  await agent.post('{"jsonrpc":"2.0","method":"notifications/cancelled"}');
  await other.post(cancelText('1'));
  held.answer('x');
  assert.deepEqual((await responseOf(answer)).result, { content: [] });
  await agent.post(cancelText('1'));
  assert.deepEqual((await responseOf(agent.open('{"jsonrpc":"2.0","id":2,"method":"tools/list"}'))).result, {
    tools: [],
  });
  assert.equal(server.count(CANCELLED), 0);
});

test(
  'each cancellation goes to the server of its own request, though ids and sessions are alike',
  PATIENCE,
  async (t) => {
    const servers = [await ChannelServer.start('stdio'), await ChannelServer.start('sse')];
    const [one, two] = servers as [ChannelServer, ChannelServer];
    const bench = await forwarding(t, { servers: { one: one.entry, two: two.entry }, behind: servers });
    const agents = [await bench.agent({}, 'one'), await bench.agent({}, 'two')] as const;
    const held = [new HeldCalls(one), new HeldCalls(two)] as const;
    for (let calls = 0; calls < 5; calls++) await held[1].begin(agents[1], `busy${calls}`, String(calls));
    await held[0].begin(agents[0], 'x', '3');
    await agents[1].post(cancelText('3'));
    await two.until(() => two.count(CANCELLED) === 1);
    assert.equal(two.of(CANCELLED)[0]?.params.requestId, held[1].get('busy3').message.id);
    await agents[0].post(cancelText('3'));
    await one.until(() => one.count(CANCELLED) === 1);
    assert.equal(one.of(CANCELLED)[0]?.params.requestId, held[0].get('x').message.id);
  },
);

for (const kind of CHANNELS)
  test(
    `${kind}: a request that is cancelled before its connection stands is never sent`,
    PATIENCE,
    async (t) => {
      const [server, bench] = await onChannel(t, kind);
      const agent = await bench.agent();
      server.drop();
      await bench.events.first(({ type }) => type === 'server_disconnected');
      const greet = server.on['initialize'];
      const release = gate();
      server.on['initialize'] = async (call) => {
        await release.opened;
        return greet?.(call);
      };
      server.on['ping'] = () => '{}';
      const pending = agent.open(callText('x', '"gone"'));
      await server.until(() => server.count('initialize') === 2);
      await agent.post(cancelText('"gone"'));
      assert.equal(await (await pending).message(), undefined);
      release.open();
      assert.deepEqual((await responseOf(agent.open('{"jsonrpc":"2.0","id":2,"method":"ping"}'))).result, {});
      assert.deepEqual([server.count('tools/call'), server.count(CANCELLED)], [0, 0]);
    },
  );

for (const kind of CHANNELS)
  test(
    `${kind}: an answer that comes after the cancellation is dropped, and the connection goes on`,
    PATIENCE,
    async (t) => {
      const [server, bench] = await onChannel(t, kind);
      const agent = await bench.agent();
      const held = new HeldCalls(server);
      const { answer } = await held.begin(agent, 'x');
      await agent.post(cancelText('1'));
      await server.until(() => server.count(CANCELLED) === 1);
      held.answer('x', '{"late":true}');
      assert.equal(await bench.dropped('response'), 'no request of that id is waiting');
      assert.equal(await (await answer).message(), undefined);
      const again = await held.begin(agent, 'y');
      held.answer('y', '{"second":true}');
      assert.deepEqual((await responseOf(again.answer)).result, { second: true });
      assert.equal(server.connections, 1);
    },
  );

/** A server with these limits, and time that stands still. */
async function limited(t: TestContext, kind: ChannelKind, limits: object) {
  const clock = new FakeClock();
  const server = await ChannelServer.start(kind);
  const bench = await forwarding(t, {
    servers: { one: { ...server.entry, ...limits } },
    behind: [server],
    clock,
  });
  return { clock, server, bench, held: new HeldCalls(server) };
}

const TOKEN = ',"_meta":{"progressToken":"p"}';

for (const kind of CHANNELS)
  test(
    `${kind}: a silent call ends at its deadline: the agent learns which server was slow, the server that it may stop`,
    PATIENCE,
    async (t) => {
      const { clock, server, bench, held } = await limited(t, kind, { requestTimeoutMs: 5_000 });
      const agent = await bench.agent();
      const { answer } = await held.begin(agent, 'x');
      clock.advance(4_999);
      assert.equal(server.count(CANCELLED), 0);
      clock.advance(1);
      const failed = await responseOf(answer);
      assert.equal(failed.error?.message, 'Server "one" did not answer tools/call within 5000 ms');
      assert.equal(codeOf(failed), 'server_timeout');
      await server.until(() => server.count(CANCELLED) === 1);
      assert.deepEqual(server.of(CANCELLED)[0]?.params, {
        requestId: held.get('x').message.id,
        reason: 'Time-out',
      });
      held.answer('x');
      await bench.dropped('response');
    },
  );

test('progress puts the deadline off, up to the absolute limit', PATIENCE, async (t) => {
  const limits = { requestTimeoutMs: 5_000, maxRequestTimeoutMs: 12_000 };
  const { clock, server, bench, held } = await limited(t, 'stdio', limits);
  const agent = await bench.agent();
  const { answer } = await held.begin(agent, 'x', '1', TOKEN);
  for (let progress = 1; progress <= 2; progress++) {
    clock.advance(4_900);
    server.notify('notifications/progress', { progressToken: held.token('x'), progress });
    assert.deepEqual((await (await answer).message())?.params, { progressToken: 'p', progress });
  }
  clock.advance(2_199);
  assert.equal(server.count(CANCELLED), 0);
  clock.advance(1);
  assert.match((await responseOf(answer)).error?.message ?? '', /within 12000 ms/);
});

test('progress of another call puts nothing off', PATIENCE, async (t) => {
  const { clock, server, bench, held } = await limited(t, 'stdio', { requestTimeoutMs: 5_000 });
  const agent = await bench.agent();
  const silent = await held.begin(agent, 'silent', '1', TOKEN);
  clock.advance(4_000);
  const busy = await held.begin(agent, 'busy', '2', TOKEN);
  server.notify('notifications/progress', { progressToken: held.token('busy'), progress: 1 });
  await (await busy.answer).message();
  clock.advance(1_000);
  assert.match((await responseOf(silent.answer)).error?.message ?? '', /within 5000 ms/);
  held.answer('busy');
  assert.deepEqual((await responseOf(busy.answer)).result, { content: [] });
});

for (const listening of [true, false])
  test(
    `the clock rests while a person is asked, ${listening ? 'on' : 'without'} a general stream`,
    PATIENCE,
    async (t) => {
      const limits = { requestTimeoutMs: 5_000, maxRequestTimeoutMs: 60_000 };
      const { clock, server, bench, held } = await limited(t, 'stdio', limits);
      const agent = await bench.agent({ capabilities: { elicitation: {} } });
      const general = listening ? await agent.listen() : undefined;
      const { answer } = await held.begin(agent, 'x');
      const other = await held.begin(agent, 'other', '2');
      const asked = server.ask('elicitation/create', { message: '?', requestedSchema: {} });
      const question = await (general ?? (await other.answer)).message();
      clock.advance(20_000);
      await agent.post(JSON.stringify({ jsonrpc: '2.0', id: question?.id, result: { action: 'accept' } }));
      assert.deepEqual((await asked).result, { action: 'accept' });
      clock.advance(4_000);
      assert.equal(server.count(CANCELLED), 0);
      held.answer('x');
      assert.deepEqual((await responseOf(answer)).result, { content: [] });
      clock.advance(1_000);
      assert.match((await responseOf(other.answer)).error?.message ?? '', /within 25000 ms/);
    },
  );

test(
  'a question open for ever does not keep a call beyond the absolute limit, and is withdrawn',
  PATIENCE,
  async (t) => {
    const limits = { requestTimeoutMs: 5_000, maxRequestTimeoutMs: 30_000 };
    const { clock, server, bench, held } = await limited(t, 'stdio', limits);
    const agent = await bench.agent({ capabilities: { elicitation: {} } });
    const { answer } = await held.begin(agent, 'x');
    const asked = server.ask('elicitation/create', { message: '?', requestedSchema: {} });
    await (await answer).message();
    clock.advance(30_000);
    assert.match((await responseOf(answer)).error?.message ?? '', /within 30000 ms/);
    assert.equal((await asked).error?.code, -32603);
  },
);

for (const kind of CHANNELS)
  test(
    `${kind}: a server that never answers initialize is given up in time, whatever a request may take`,
    PATIENCE,
    async (t) => {
      const clock = new FakeClock();
      const server = await ChannelServer.start(kind, { initialize: () => undefined });
      const entry = { ...server.entry, connectTimeoutMs: 9_000, requestTimeoutMs: 1_000 };
      const bench = await forwarding(t, { servers: { one: entry }, behind: [server], clock });
      const failed = bench.agent().catch((error: Error) => error.message);
      await server.until(() => server.count('initialize') === 1);
      clock.advance(8_999);
      // A round trip, in which a failure would have shown.
      await (await open(`${bench.gateway.url}/healthz`)).text();
      assert.equal(server.open, 1);
      clock.advance(1);
      assert.match(String(await failed), /Server \\"one\\" did not answer initialize within 9000 ms/);
      await server.until(() => server.open === 0);
      assert.equal(server.count(CANCELLED), 0);
    },
  );

test(
  'http: a server that takes a list and never answers fails all who wait for it, by name',
  PATIENCE,
  async (t) => {
    const clock = new FakeClock();
    const server = await HttpUpstream.start();
    server.serveSessions('/mcp', () => {});
    const entry = { url: server.url(), type: 'http', requestTimeoutMs: 3_000 };
    const bench = await forwarding(t, {
      servers: { one: entry },
      behind: [{ close: () => server.stop() }],
      clock,
    });
    const agents = [await bench.agent(), await bench.agent()];
    const lists = agents.map((agent) => agent.open('{"jsonrpc":"2.0","id":1,"method":"tools/list"}'));
    await bench.events.first(
      () => bench.events.all.filter(({ type }) => type === 'cache_outcome').length === 2,
    );
    await server.received('tools/list');
    clock.advance(3_000);
    for (const list of lists)
      assert.match(
        (await responseOf(list)).error?.message ?? '',
        /Server "one" did not answer tools\/list within 3000 ms/,
      );
    const told = await server.received(CANCELLED);
    assert.equal(told.json.params.requestId, server.of('tools/list')[0]?.json.id);
    assert.equal(server.count('tools/list'), 1);
  },
);

test(
  'an answer under an id that nobody gave reaches nobody, and only its request waits in vain',
  PATIENCE,
  async (t) => {
    const { clock, server, bench, held } = await limited(t, 'stdio', { requestTimeoutMs: 5_000 });
    const agent = await bench.agent();
    const [lost, kept] = [await held.begin(agent, 'lost', '"s"'), await held.begin(agent, 'kept', '2')];
    for (const id of ['0', 'null', JSON.stringify(String(held.get('lost').message.id))])
      server.say(`{"jsonrpc":"2.0","id":${id},"error":{"code":1,"message":"wrong"}}`);
    server.say('{"jsonrpc":"2.0","error":{"code":1,"message":"without an id"}}');
    held.answer('kept', '{"kept":true}');
    assert.deepEqual((await responseOf(kept.answer)).result, { kept: true });
    clock.advance(5_000);
    assert.match((await responseOf(lost.answer)).error?.message ?? '', /"one" did not answer tools\/call/);
  },
);

test('http: an answer with an array, or under another id, fails that request alone', PATIENCE, async (t) => {
  const server = await HttpUpstream.start();
  server.serveSessions('/mcp', (request, response) => {
    const { id, params } = request.json;
    const answer = { jsonrpc: '2.0', id: params.name === 'odd' ? 0 : id, result: {} };
    const body = JSON.stringify(params.name === 'array' ? [answer] : answer);
    response.play({ headers: JSON_BODY, chunks: [body] });
  });
  const bench = await forwarding(t, {
    servers: { one: { url: server.url(), type: 'http' } },
    behind: [{ close: () => server.stop() }],
  });
  const agent = await bench.agent();
  const calls = ['array', 'odd', 'good'].map((name, id) =>
    responseOf(agent.open(callText(name, String(id)))),
  );
  const [array, odd, good] = await Promise.all(calls);
  for (const failed of [array, odd]) assert.equal(codeOf(failed), 'server_protocol');
  assert.deepEqual(good?.result, {});
});

test(
  'an agent that drops its connection has cancelled nothing, until nobody can come back for the answer',
  PATIENCE,
  async (t) => {
    const clock = new FakeClock();
    const server = await McpServer.start({ on: { 'tools/call': () => new Promise<string>(() => {}) } });
    const bench = await forwarding(t, {
      servers: { one: { url: server.url, requestTimeoutMs: 1_000_000 } },
      behind: [server],
      clock,
      settings: { resumeMs: 60_000 },
    });
    const agent = await bench.agent();
    const drop = await begin(bench.url(), {
      headers: { ...POST_HEADERS, ...agent.headers },
      body: callText('x'),
    });
    await server.until(() => server.count('tools/call') === 1);
    drop();
    await clock.armed((delayMs) => delayMs === 60_000);
    clock.advance(59_999);
    await agent.post('{"jsonrpc":"2.0","method":"notifications/vendor/x"}');
    await server.until(() => server.notifications.length === 2);
    assert.deepEqual(server.count(CANCELLED), 0);
    clock.advance(1);
    await server.until(() => server.count(CANCELLED) === 1);
  },
);

test('http: cancelling a call frees its stream at the server', PATIENCE, async (t) => {
  const [server, bench] = await silentHttp(t);
  const agent: TestAgent = await bench.agent();
  const pending = agent.open(callText('x'));
  await server.received('tools/call');
  const response = server.responses[server.seen.findIndex(({ json }) => json?.method === 'tools/call')];
  await agent.post(cancelText('1'));
  await response?.gone();
  await pending;
  server.serveSessions('/mcp', answering({ ok: 1 }));
  assert.deepEqual((await responseOf(agent.open(callText('y')))).result, { ok: 1 });
});
