import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { callText, codeOf, gate, initializeText, notificationText } from '../support/agent-gateway.js';
import { type ChannelHandler, ChannelServer } from '../support/channel-server.js';
import { FakeClock } from '../support/fake-clock.js';
import type { LineAgent } from '../support/line-agent.js';
import type { Wire } from '../support/mcp-server.js';
import { DISCOVERED, listenText, modernCall, modernMeta, modernText } from '../support/modern-text.js';
import { type StdioBench, stdioGateway } from '../support/stdio-gateway.js';

const PATIENCE = { timeout: 20_000 };
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';

interface Bench extends StdioBench {
  readonly server: ChannelServer;
  readonly clock: FakeClock;
  /** Lets the calls of `slow` be answered. */
  readonly release: () => void;
}

/** An agent in front of a server on stdio that speaks both eras, and bytes. */
async function bench(t: TestContext, on: Readonly<Record<string, ChannelHandler>> = {}): Promise<Bench> {
  const slow = gate();
  const call: ChannelHandler = async ({ message }) => {
    const { name } = message.params;
    if (name === 'slow') await slow.opened;
    return `{"resultType":"complete","content":[], "name":${JSON.stringify(name)}}`;
  };
  const server = await ChannelServer.start('stdio', {
    'server/discover': () => DISCOVERED,
    'subscriptions/listen': acknowledge,
    'tools/call': call,
    ...on,
  });
  const clock = new FakeClock();
  const settings = { shutdownMs: 10_000 };
  const one = stdioGateway(t, { servers: { one: server.entry }, behind: [server], clock, settings });
  return { ...one, server, clock, release: slow.open };

  function acknowledge({ message }: { readonly message: Wire }): undefined {
    const { notifications } = message.params;
    const params = { _meta: { [SUBSCRIPTION]: message.id }, notifications };
    server.notify('notifications/subscriptions/acknowledged', params);
  }
}

/** Tells the gateway of a change, on what it listens to. */
function change(server: ChannelServer, method: string, params: object = {}): void {
  const { id } = server.of('subscriptions/listen').at(-1) ?? {};
  server.notify(method, { _meta: { [SUBSCRIPTION]: id }, ...params });
}

/** The next messages until one answers `id`, which is the last of them. */
async function untilAnswer(agent: LineAgent, id: unknown): Promise<Wire[]> {
  const heard: Wire[] = [];
  for (;;) {
    const message = await agent.hearWire();
    heard.push(message);
    if (message.id === id) return heard;
  }
}

test('a request that declares its revision is served at once, byte for byte', PATIENCE, async (t) => {
  const odd = '{"resultType":"complete","n":9007199254740993,"\\u0061":1.0,"content":[]}';
  const { agent, server } = await bench(t, { 'tools/call': () => odd });
  const text = modernCall('x', '"\\u0069d"', { more: { 'vendor/big': '§' } }).replace('"§"', '1.50e0');
  await agent.say(text);
  assert.equal(await agent.hear(), `{"jsonrpc":"2.0","id":"\\u0069d","result":${odd}}`);
  assert.equal(server.count('initialize'), 0);
  const sent = server.raw.find((raw) => raw.includes('tools/call')) ?? '';
  assert.equal(sent.replace(/"id":\d+/, '"id":"\\u0069d"'), text);
});

test('agents of one pipe may mix the eras: each request is served in its own', PATIENCE, async (t) => {
  const held = gate();
  const { agent, server, release } = await bench(t, {
    initialize: async () => {
      await held.opened;
      return '{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}';
    },
  });
  await agent.say(modernCall('before', '1'));
  assert.equal((await agent.hearWire()).result.name, 'before');
  await agent.say(initializeText({}, '2'));
  await agent.say(modernCall('meanwhile', '3'));
  assert.equal((await agent.hearWire()).id, 3);
  held.open();
  assert.equal((await agent.hearWire()).result.protocolVersion, '2025-11-25');
  await agent.say(modernCall('slow', '4'));
  await agent.say(callText('slow', '5'));
  await server.until(() => server.of('tools/call').filter(isSlow).length === 2);
  release();
  const ids = [(await agent.hearWire()).id, (await agent.hearWire()).id];
  assert.deepEqual(ids.sort(), [4, 5]);
  const declared = server
    .of('tools/call')
    .filter(isSlow)
    .map((message) => '_meta' in message.params);
  assert.deepEqual(declared.sort(), [false, true]);
});

function isSlow({ params }: Wire): boolean {
  return params.name === 'slow';
}

test('a new session leaves the requests that have none alone', PATIENCE, async (t) => {
  const { agent, server, release } = await bench(t);
  await agent.say(initializeText({}, '1'));
  assert.equal((await agent.hearWire()).id, 1);
  await agent.say(modernCall('slow', '2'));
  await server.until(() => server.count('tools/call') === 1);
  await agent.say(initializeText({}, '3'));
  assert.equal((await agent.hearWire()).id, 3);
  release();
  assert.equal((await agent.hearWire()).result.name, 'slow');
});

test('initialize begins a session whatever its `_meta` declares', PATIENCE, async (t) => {
  const { agent, server } = await bench(t);
  const declared = `"params":{"_meta":${JSON.stringify(modernMeta())},`;
  await agent.say(initializeText({}, '1').replace('"params":{', declared));
  assert.equal((await agent.hearWire()).result.protocolVersion, '2025-11-25');
  await agent.say(callText('x', '2'));
  assert.equal((await agent.hearWire()).id, 2);
  assert.equal(server.count('server/discover'), 0);
});

test('a request without a declaration and without a session is told what is spoken', PATIENCE, async (t) => {
  const { agent, server } = await bench(t);
  for (const text of [callText('x', '1'), modernText('server/discover', '1', { _meta: {} })]) {
    await agent.say(text);
    const { id, error } = await agent.hearWire();
    assert.deepEqual([id, error?.code], [1, -32600]);
    assert.match(error?.message ?? '', /`initialize` comes first, unless .* `params\._meta`/);
    const supported = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'];
    assert.deepEqual((error?.data as { supported: unknown } | undefined)?.supported, supported);
  }
  assert.equal(server.connections, 0);
});

test('a declaration that is not whole is refused in-band', PATIENCE, async (t) => {
  const { agent, server } = await bench(t);
  const cases: [number, RegExp, string][] = [
    [-32602, /clientCapabilities/, modernCall('x', '1', { capabilities: undefined })],
    [-32602, /clientCapabilities/, modernCall('x', '1', { capabilities: [] })],
    [-32602, /clientInfo/, modernCall('x', '1', { clientInfo: 'me' })],
    [-32602, /logLevel/, modernCall('x', '1', { logLevel: 'loud' })],
    [-32602, /protocolVersion/, modernCall('x', '1', { revision: 20260728 })],
    [-32602, /given twice/, modernCall('x', '1').replace('"_meta":', '"_meta":{},"_meta":')],
    [-32022, /Unsupported protocol version/, modernCall('x', '1', { revision: '2099-01-01' })],
    [-32022, /Unsupported protocol version/, modernCall('x', '1', { revision: 'latest' })],
    [-32022, /Unsupported protocol version/, modernCall('x', '1', { revision: '' })],
  ];
  for (const [code, why, text] of cases) {
    await agent.say(text);
    const { id, error } = await agent.hearWire();
    assert.deepEqual([id, error?.code], [1, code], text);
    assert.match(error?.message ?? '', why);
  }
  await agent.say(modernCall('x', '1', { revision: '2099-01-01' }));
  const data = (await agent.hearWire()).error?.data as Record<string, unknown>;
  assert.deepEqual([data['supported'], data['requested']], [['2026-07-28'], '2099-01-01']);
  assert.equal(server.connections, 0);
});

test("a server's own error passes as it came", PATIENCE, async (t) => {
  const { agent, server } = await bench(t, { 'tools/call': () => undefined });
  await agent.say(modernCall('x', '1'));
  await server.until(() => server.count('tools/call') === 1);
  const error = '{"code":-32602,"message":"\\u0041h","data":{"n":1.0}}';
  server.say(`{"jsonrpc":"2.0","id":${server.of('tools/call')[0]?.id},"error":${error}}`);
  assert.equal(await agent.hear(), `{"jsonrpc":"2.0","id":1,"error":${error}}`);
  await agent.say(modernText('vendor/unknown', '2'));
  assert.equal((await agent.hearWire()).error?.code, -32601);
});

test('progress reaches the agent with its own token, in its own type', PATIENCE, async (t) => {
  const { agent, server, release } = await bench(t);
  await agent.say(modernCall('slow', '1', { progressToken: '1' }));
  await server.until(() => server.count('tools/call') === 1);
  const { progressToken } = server.of('tools/call')[0]?.params._meta ?? {};
  server.notify('notifications/progress', { progressToken, progress: 1 });
  assert.deepEqual((await agent.hearWire()).params, { progressToken: '1', progress: 1 });
  release();
  assert.equal((await agent.hearWire()).id, 1);
});

test('log messages reach only a request that wants them, from its level on', PATIENCE, async (t) => {
  const { agent, server } = await bench(t, {
    'tools/call': () => {
      for (const level of ['debug', 'info', 'warning', 'loud'])
        server.notify('notifications/message', { level, data: level });
      return '{"resultType":"complete","content":[]}';
    },
  });
  await agent.say(modernCall('x', '1', { logLevel: 'info' }));
  const heard = await untilAnswer(agent, 1);
  assert.deepEqual(
    heard.map(({ params }) => params?.level),
    ['info', 'warning', undefined],
  );
  await agent.say(modernCall('x', '2'));
  assert.equal((await untilAnswer(agent, 2)).length, 1);
});

test('a withdrawn request is withdrawn from the server, and never answered', PATIENCE, async (t) => {
  const { agent, server, release } = await bench(t);
  await agent.say(modernCall('slow', '"a"'));
  await server.until(() => server.count('tools/call') === 1);
  await agent.say(notificationText('notifications/cancelled', { requestId: 'a', reason: 'enough' }));
  await server.until(() => server.count('notifications/cancelled') === 1);
  const { params } = server.of('notifications/cancelled')[0] ?? {};
  assert.deepEqual(params, { requestId: server.of('tools/call')[0]?.id, reason: 'enough' });
  release();
  await agent.say(modernCall('x', '2'));
  assert.equal((await agent.hearWire()).id, 2);
});

test('an id that several requests have withdraws none of them, of whatever era', PATIENCE, async (t) => {
  const { agent, server, release } = await bench(t);
  await agent.say(initializeText({}, '0'));
  await agent.hear();
  for (const text of [modernCall('slow', '1'), modernCall('slow', '1'), modernCall('slow', '2')])
    await agent.say(text);
  for (const text of [callText('slow', '2'), callText('slow', '3'), modernCall('slow', '"3"')])
    await agent.say(text);
  await server.until(() => server.count('tools/call') === 6);
  for (const requestId of [1, 2, 4, '"', { odd: 1 }, 3])
    await agent.say(notificationText('notifications/cancelled', { requestId }));
  await server.until(() => server.count('notifications/cancelled') === 1);
  const withdrawn = server.of('notifications/cancelled')[0]?.params.requestId;
  const victim = server.of('tools/call').find(({ id }) => id === withdrawn);
  assert.deepEqual([victim?.params.name, victim?.params._meta], ['slow', undefined]);
  release();
  const ids: unknown[] = [];
  for (let i = 0; i < 5; i++) ids.push((await agent.hearWire()).id);
  assert.deepEqual(ids.sort(), [1, 1, 2, 2, '3']);
});

test('a subscription is acknowledged first, and told under its own id', PATIENCE, async (t) => {
  const { agent, server } = await bench(t);
  await agent.say(listenText('7', { toolsListChanged: true }));
  const first = await agent.hearWire();
  assert.equal(first.method, 'notifications/subscriptions/acknowledged');
  assert.deepEqual(first.params, { _meta: { [SUBSCRIPTION]: 7 }, notifications: { toolsListChanged: true } });
  await agent.say(listenText('"7"', { toolsListChanged: true, resourceSubscriptions: ['x:y'] }));
  assert.equal((await agent.hearWire()).params._meta[SUBSCRIPTION], '7');
  change(server, 'notifications/tools/list_changed');
  const told = [await agent.hearWire(), await agent.hearWire()];
  assert.deepEqual(told.map(({ params }) => params._meta[SUBSCRIPTION]).sort(), [7, '7']);
  await agent.say(notificationText('notifications/cancelled', { requestId: 7 }));
  change(server, 'notifications/resources/updated', { uri: 'x:y' });
  const { method, params } = await agent.hearWire();
  assert.equal(method, 'notifications/resources/updated');
  assert.deepEqual(params, { _meta: { [SUBSCRIPTION]: '7' }, uri: 'x:y' });
  await agent.say(modernCall('x', '8'));
  assert.equal((await agent.hearWire()).id, 8);
});

for (const [how, leave] of [
  ['drained', ({ gateway }: Bench) => void gateway.drain()],
  ['at the end of its input', ({ agent }: Bench) => void agent.stdin.end()],
] as const)
  test(`${how} an agent gets what is under way, and the end of its subscriptions`, PATIENCE, async (t) => {
    const one = await bench(t);
    const { agent, server, gateway, release } = one;
    await agent.say(listenText('"s"', { toolsListChanged: true }));
    assert.equal((await agent.hearWire()).method, 'notifications/subscriptions/acknowledged');
    await agent.say(modernCall('slow', '1'));
    await server.until(() => server.count('tools/call') === 1);
    leave(one);
    const end = `{"jsonrpc":"2.0","id":"s","result":{"resultType":"complete","_meta":{"${SUBSCRIPTION}":"s"}}}`;
    assert.equal(await agent.hear(), end);
    release();
    assert.equal((await agent.hearWire()).id, 1);
    await gateway.done;
  });

test('a subscription alone keeps nobody waiting', PATIENCE, async (t) => {
  const { agent, gateway } = await bench(t);
  await agent.say(listenText('1', { toolsListChanged: true }));
  await agent.hear();
  await gateway.drain();
  assert.equal((await agent.hearWire()).result.resultType, 'complete');
});

test(
  'a subscription that no server has acknowledged yet keeps nobody waiting either',
  PATIENCE,
  async (t) => {
    const { agent, gateway, server } = await bench(t, { 'server/discover': () => undefined });
    await agent.say(listenText('1', {}));
    await server.until(() => server.count('server/discover') === 1);
    const drained = gateway.drain();
    assert.deepEqual((await agent.hearWire()).result._meta, { [SUBSCRIPTION]: 1 });
    await drained;
  },
);

test('whoever is sent away at once gets an error for what is under way', PATIENCE, async (t) => {
  const { agent, gateway, server } = await bench(t);
  await agent.say(listenText('1', { toolsListChanged: true }));
  await agent.hear();
  await agent.say(modernCall('slow', '2'));
  await server.until(() => server.count('tools/call') === 1);
  await gateway.close();
  assert.equal((await agent.hearWire()).result.resultType, 'complete');
  const failed = await agent.hearWire();
  assert.deepEqual([failed.id, codeOf(failed)], [2, 'shutting_down']);
});

test('an agent that reads no more takes what it asked for along', PATIENCE, async (t) => {
  const { agent, gateway, server } = await bench(t);
  await agent.say(modernCall('slow', '1'));
  await server.until(() => server.count('tools/call') === 1);
  agent.stdout.destroy();
  await gateway.done;
  await server.until(() => server.count('notifications/cancelled') === 1);
});

test('a subscriber that leaves too much unread is told that its subscription ended', PATIENCE, async (t) => {
  const big = `{"resultType":"complete","content":[],"big":"${'x'.repeat(5_000_000)}"}`;
  const { agent, server, dropped } = await bench(t, {
    'tools/call': ({ answer }) => {
      answer(big);
      server.notify('notifications/behind');
      return undefined;
    },
  });
  await agent.say(listenText('1', { toolsListChanged: true }));
  await agent.hear();
  agent.stdout.pause();
  await agent.say(modernCall('big', '2'));
  await dropped('notifications/behind');
  change(server, 'notifications/tools/list_changed');
  await dropped('notifications/tools/list_changed');
  agent.stdout.resume();
  assert.equal((await agent.hearWire()).id, 2);
  const { id, result } = await agent.hearWire();
  assert.deepEqual([id, result._meta], [1, { [SUBSCRIPTION]: 1 }]);
});

test('what a server asks of its own accord is not written', PATIENCE, async (t) => {
  const { agent, server, dropped, release } = await bench(t);
  await agent.say(modernCall('slow', '1', { capabilities: { roots: {} } }));
  await server.until(() => server.count('tools/call') === 1);
  void server.ask('roots/list');
  await dropped('roots/list');
  release();
  assert.equal((await agent.hearWire()).id, 1);
});

test(
  'a notification goes to the server of the era that it declares, or that the agent speaks',
  PATIENCE,
  async (t) => {
    const { agent, server } = await bench(t);
    await agent.say(notificationText('notifications/lost', { n: 0 }));
    await agent.say(notificationText('notifications/x', { _meta: modernMeta(), n: 1 }));
    await server.until(() => server.count('notifications/x') === 1);
    await agent.say(modernCall('x', '1'));
    await agent.hear();
    await agent.say(notificationText('notifications/x', { n: 2 }));
    await server.until(() => server.count('notifications/x') === 2);
    assert.deepEqual(
      server.of('notifications/x').map(({ params }) => params.n),
      [1, 2],
    );
    assert.equal(server.count('notifications/lost'), 0);
    assert.equal(server.count('initialize'), 0);
  },
);
