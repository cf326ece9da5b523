import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestAgent } from '../support/agent-gateway.js';
import type { Incoming } from '../support/agent-http.js';
import { type ChannelKind, ChannelServer } from '../support/channel-server.js';
import { type Forwarding, forwarding, PATIENCE, responseOf, restOf } from '../support/forwarding.js';
import { McpServer, Refusal, type Wire } from '../support/mcp-server.js';

const CHANNELS: readonly ChannelKind[] = ['stdio', 'sse'];
const SUBSCRIBE = 'resources/subscribe';
const UNSUBSCRIBE = 'resources/unsubscribe';
const UPDATED = 'notifications/resources/updated';
const LEVEL = 'logging/setLevel';
const LOG = 'notifications/message';
/** Told to every agent, so that a test knows what did not come before it. */
const MARKER = 'notifications/prompts/list_changed';

function onChannels(name: string, run: (server: ChannelServer, bench: Forwarding) => Promise<void>): void {
  for (const kind of CHANNELS)
    test(`${kind}: ${name}`, PATIENCE, async (t) => {
      const server = await ChannelServer.start(kind);
      const bench = await forwarding(t, { servers: { one: server.entry }, behind: [server] });
      await run(server, bench);
    });
}

async function send(agent: TestAgent, method: string, params: object = {}): Promise<Wire> {
  const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  return responseOf(agent.open(text));
}

const subscribe = (agent: TestAgent, uri: string) => send(agent, SUBSCRIBE, { uri });
const unsubscribe = (agent: TestAgent, uri: string) => send(agent, UNSUBSCRIBE, { uri });
const setLevel = (agent: TestAgent, level: string) => send(agent, LEVEL, { level });

async function heard(server: ChannelServer, ...streams: Incoming[]): Promise<unknown[][]> {
  server.notify(MARKER);
  return Promise.all(streams.map((stream) => heardOn(stream)));
}

async function heardOn(stream: Incoming): Promise<unknown[]> {
  const all: unknown[] = [];
  for (let message = await stream.message(); message; message = await stream.message()) {
    if (message.method === MARKER) return all;
    all.push(message.params.uri ?? message.params.data);
  }
  throw new Error('The stream ended');
}

const uris = (server: ChannelServer, method: string) => server.of(method).map(({ params }) => params.uri);
const levels = (server: ChannelServer) => server.of(LEVEL).map(({ params }) => params.level);

onChannels(
  'a subscription is ended at the server when its last agent ends it, and not before',
  async (server, bench) => {
    const [a, b] = [await bench.listener(), await bench.listener()];
    for (const { agent } of [a, b]) assert.deepEqual((await subscribe(agent, 'file:///x')).result, {});
    assert.deepEqual((await unsubscribe(a.agent, 'file:///x')).result, {});
    assert.equal(server.count(UNSUBSCRIBE), 0);
    server.notify(UPDATED, { uri: 'file:///x' });
    assert.deepEqual(await heard(server, a.stream, b.stream), [[], ['file:///x']]);
    assert.deepEqual((await unsubscribe(b.agent, 'file:///x')).result, {});
    assert.deepEqual(uris(server, UNSUBSCRIBE), ['file:///x']);
  },
);

onChannels('an agent that never subscribed cannot end the subscription of another', async (server, bench) => {
  const [a, b] = [await bench.listener(), await bench.listener()];
  await subscribe(a.agent, 'file:///x');
  assert.deepEqual((await unsubscribe(b.agent, 'file:///x')).result, {});
  assert.equal(server.count(UNSUBSCRIBE), 0);
  server.notify(UPDATED, { uri: 'file:///x' });
  assert.deepEqual(await heard(server, a.stream, b.stream), [['file:///x'], []]);
});

onChannels('the end of an agent’s session ends what it alone had subscribed to', async (server, bench) => {
  const [a, b] = [await bench.listener(), await bench.listener()];
  for (const uri of ['file:///shared', 'file:///own']) await subscribe(a.agent, uri);
  await subscribe(b.agent, 'file:///shared');
  await a.agent.send({ method: 'DELETE' });
  await server.until(() => server.count(UNSUBSCRIBE) > 0);
  assert.deepEqual(uris(server, UNSUBSCRIBE), ['file:///own']);
  server.notify(UPDATED, { uri: 'file:///shared' });
  assert.deepEqual(await heard(server, b.stream), [['file:///shared']]);
});

onChannels(
  'an update reaches those who watch the resource or what it is part of, and nobody else',
  async (server, bench) => {
    const [a, b, c] = [await bench.listener(), await bench.listener(), await bench.listener()];
    await subscribe(a.agent, 'file:///dir/a');
    await subscribe(b.agent, 'file:///dir');
    for (const uri of [
      'file:///dir/a',
      'file:///dir/a#part',
      'file:///dir/a?v=1',
      'file:///dir/ab',
      'file:///dirt',
    ])
      server.notify(UPDATED, { uri });
    assert.deepEqual(await heard(server, a.stream, b.stream, c.stream), [
      ['file:///dir/a', 'file:///dir/a#part', 'file:///dir/a?v=1'],
      ['file:///dir/a', 'file:///dir/a#part', 'file:///dir/a?v=1', 'file:///dir/ab'],
      [],
    ]);
  },
);

onChannels(
  'a subscription that is given up while its server is asked is ended there',
  async (server, bench) => {
    const { agent } = await bench.listener();
    server.on[SUBSCRIBE] = () => new Promise<string>(() => {});
    void agent.open(
      JSON.stringify({ jsonrpc: '2.0', id: 1, method: SUBSCRIBE, params: { uri: 'file:///x' } }),
    );
    await server.until(() => server.count(SUBSCRIBE) === 1);
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
    await agent.post(JSON.stringify(cancelled));
    await server.until(() => server.count(UNSUBSCRIBE) === 1);
    assert.deepEqual(uris(server, UNSUBSCRIBE), ['file:///x']);
  },
);

onChannels('a subscription that the server refuses is none', async (server, bench) => {
  const [a, b] = [await bench.listener(), await bench.listener()];
  server.on[SUBSCRIBE] = () => {
    throw new Refusal(-32602, 'Not that one', { uri: 'file:///x' });
  };
  const refused = await subscribe(a.agent, 'file:///x');
  assert.deepEqual(refused.error, { code: -32602, message: 'Not that one', data: { uri: 'file:///x' } });
  server.on[SUBSCRIBE] = () => '{}';
  await subscribe(b.agent, 'file:///x');
  server.notify(UPDATED, { uri: 'file:///x' });
  assert.deepEqual(await heard(server, a.stream, b.stream), [[], ['file:///x']]);
  await unsubscribe(b.agent, 'file:///x');
  assert.deepEqual(uris(server, UNSUBSCRIBE), ['file:///x']);
});

onChannels(
  'a new connection is given what its agents watch and the level they wanted, each once',
  async (server, bench) => {
    const [a, b] = [await bench.agent(), await bench.agent()];
    for (const uri of ['file:///x', 'file:///y']) await subscribe(a, uri);
    await subscribe(b, 'file:///x');
    await subscribe(b, 'file:///gone');
    await unsubscribe(b, 'file:///gone');
    await setLevel(a, 'warning');
    const before = server.received.length;
    server.drop();
    await bench.events.first((event) => event.type === 'server_disconnected');
    await send(b, 'ping');
    await server.until(() => server.count('ping') === 1);
    const after = server.received.slice(before).filter(({ params }) => params?.uri ?? params?.level);
    assert.deepEqual(after.map(({ method, params }) => [method, params.uri ?? params.level]).sort(), [
      [LEVEL, 'warning'],
      [SUBSCRIBE, 'file:///x'],
      [SUBSCRIBE, 'file:///y'],
    ]);
  },
);

onChannels('a subscription that begins a connection is asked for once', async (server, bench) => {
  const a = await bench.agent();
  server.drop();
  await bench.events.first((event) => event.type === 'server_disconnected');
  await subscribe(a, 'file:///x');
  await send(a, 'ping');
  assert.deepEqual(uris(server, SUBSCRIBE), ['file:///x']);
});

onChannels('who subscribes while the last one leaves is subscribed in the end', async (server, bench) => {
  const [a, b] = [await bench.listener(), await bench.listener()];
  const watched = new Set<string>();
  const held: (() => void)[] = [];
  server.on[SUBSCRIBE] = ({ message }) => {
    watched.add(message.params.uri);
    return '{}';
  };
  // The server takes its time: what came later overtakes it.
  server.on[UNSUBSCRIBE] = ({ message, answer }) => {
    held.push(() => {
      watched.delete(message.params.uri);
      answer('{}');
    });
    return undefined;
  };
  await subscribe(a.agent, 'file:///x');
  const leaving = unsubscribe(a.agent, 'file:///x');
  await server.until(() => held.length === 1);
  await subscribe(b.agent, 'file:///x');
  held[0]?.();
  await leaving;
  await server.until(() => server.count(SUBSCRIBE) === 3);
  assert.ok(watched.has('file:///x'));
});

onChannels(
  'the server is told the most verbose level, and each agent hears its own',
  async (server, bench) => {
    const [a, b] = [await bench.listener(), await bench.listener()];
    assert.deepEqual((await setLevel(a.agent, 'warning')).result, {});
    assert.deepEqual((await setLevel(b.agent, 'debug')).result, {});
    assert.deepEqual((await setLevel(a.agent, 'error')).result, {});
    assert.deepEqual(levels(server), ['warning', 'debug']);
    server.on['tools/call'] = ({ answer }) => {
      for (const level of ['debug', 'info', 'error', 'emergency', 'odd', undefined])
        server.notify(LOG, { level, data: level ?? 'none' });
      answer('{"content":[]}');
      return undefined;
    };
    for (const [{ agent }, expected] of [
      [a, ['error', 'emergency', 'odd', 'none']],
      [b, ['debug', 'info', 'error', 'emergency', 'odd', 'none']],
    ] as const) {
      const call = agent.open(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`);
      const messages = await restOf(call);
      assert.deepEqual(
        messages.flatMap(({ method, params }) => (method === LOG ? [params.data] : [])),
        expected,
      );
    }
  },
);

onChannels('the server is told when its most verbose agent wants less, or leaves', async (server, bench) => {
  const [a, b, c] = [await bench.agent(), await bench.agent(), await bench.agent()];
  await setLevel(a, 'error');
  await setLevel(b, 'info');
  await setLevel(c, 'debug');
  await setLevel(c, 'critical');
  await server.until(() => levels(server).length === 4);
  await b.send({ method: 'DELETE' });
  await server.until(() => levels(server).length === 5);
  assert.deepEqual(levels(server), ['error', 'info', 'debug', 'info', 'error']);
});

onChannels('a level that the server refuses, or that is none, changes nothing', async (server, bench) => {
  const { agent, stream } = await bench.listener();
  server.on[LEVEL] = ({ message }) => {
    if (message.params.level !== 'info') throw new Refusal(-32602, 'No');
    return '{}';
  };
  assert.deepEqual((await setLevel(agent, 'info')).result, {});
  for (const level of ['emergency', 'loud']) assert.equal((await setLevel(agent, level)).error?.code, -32602);
  server.notify(LOG, { level: 'info', data: 'still' });
  assert.deepEqual(await heard(server, stream), [['still']]);
});

test(
  'http: an update on a call’s own stream reaches its agent there and the others on their general ones',
  PATIENCE,
  async (t) => {
    const server = await McpServer.start({ on: { [SUBSCRIBE]: () => '{}' } });
    const bench = await forwarding(t, { servers: { one: { url: server.url } }, behind: [server] });
    const [a, b] = [await bench.agent(), await bench.listener()];
    const stranger = await bench.listener();
    await subscribe(a, 'file:///x');
    await subscribe(b.agent, 'file:///x');
    server.on['tools/call'] = ({ notify }) => {
      notify(UPDATED, { uri: 'file:///x' });
      return '{"content":[]}';
    };
    const call = (agent: TestAgent) =>
      restOf(agent.open('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}'));
    assert.deepEqual(
      (await call(a)).map(({ method }) => method),
      [UPDATED, undefined],
    );
    assert.equal((await b.stream.message())?.params.uri, 'file:///x');
    assert.deepEqual(
      (await call(stranger.agent)).map(({ method }) => method),
      [undefined],
    );
    server.broadcast(MARKER);
    assert.deepEqual(await heardOn(stranger.stream), []);
  },
);

test('http: a new session is given what its agents watch, and their level', PATIENCE, async (t) => {
  const server = await McpServer.start({
    on: { [SUBSCRIBE]: () => '{}', [LEVEL]: () => '{}', ping: () => '{}' },
  });
  const bench = await forwarding(t, { servers: { one: { url: server.url } }, behind: [server] });
  const agent = await bench.agent();
  await subscribe(agent, 'file:///x');
  await setLevel(agent, 'debug');
  server.forgetSessions();
  await send(agent, 'ping');
  await server.until(() => server.count(SUBSCRIBE) === 2 && server.count(LEVEL) === 2);
  assert.equal(server.count('initialize'), 2);
});

test(
  'http: an update for an agent without a general stream is told when it opens one',
  PATIENCE,
  async (t) => {
    const server = await McpServer.start({ on: { [SUBSCRIBE]: () => '{}' } });
    const bench = await forwarding(t, { servers: { one: { url: server.url } }, behind: [server] });
    const [quiet, loud] = [await bench.agent(), await bench.listener()];
    for (const agent of [quiet, loud.agent]) await subscribe(agent, 'file:///x');
    await server.until(() => server.openStreams === 1);
    for (let i = 0; i < 3; i++) server.broadcast(UPDATED, { uri: 'file:///x' });
    for (let i = 0; i < 3; i++) await loud.stream.message();
    server.broadcast(MARKER);
    await loud.stream.message();
    assert.deepEqual(await heardOn(await quiet.listen()), ['file:///x']);
  },
);
