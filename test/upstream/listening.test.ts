import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Incoming } from '../support/agent-http.js';
import { modernText } from '../support/modern-text.js';
import { caller, exchange, localAgent, openCore, openGateway, remote } from '../support/pool-bench.js';
import {
  ACKNOWLEDGED,
  listenServer,
  news,
  postModern,
  SUBSCRIPTION_ID,
  subscribe,
  subscribed,
} from '../support/subscriptions.js';

const LISTS = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };

async function text(stream: Incoming): Promise<string> {
  for (;;) {
    const event = await stream.next();
    if (!event) throw new Error('The stream ended');
    if (event.json) return event.data ?? '';
  }
}

test('an agent is acknowledged first, with what the server honours of what it asked', async (t) => {
  const server = await listenServer(t);
  server.onListen = (one) => {
    one.acknowledge({ toolsListChanged: true });
    one.changed('tools');
  };
  const gateway = await openGateway(t, { one: remote(server.server.url) });
  const stream = await subscribe(gateway.url(), { toolsListChanged: true, promptsListChanged: true });
  const first = await stream.message();
  assert.equal(first?.method, ACKNOWLEDGED);
  assert.deepEqual(first?.params, {
    _meta: { [SUBSCRIPTION_ID]: 1 },
    notifications: { toolsListChanged: true },
  });
  assert.equal(await news(stream), 'tools/list_changed');
});

test('what comes in one piece with the acknowledgement is told behind it', async (t) => {
  const server = await listenServer(t);
  server.onListen = (one) => {
    const stamp = `"_meta":{"${SUBSCRIPTION_ID}":${one.message.id}}`;
    const acknowledged = `{"jsonrpc":"2.0","method":"${ACKNOWLEDGED}","params":{${stamp},"notifications":{"toolsListChanged":true}}}`;
    const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{${stamp}}}`;
    one.say(`${acknowledged}\n\nevent: message\ndata: ${changed}`);
  };
  const gateway = await openGateway(t, { one: remote(server.server.url) });
  const { stream } = await subscribed(gateway.url(), { toolsListChanged: true });
  assert.equal(await news(stream), 'tools/list_changed');
});

test('the stamp is the id of the agent, whatever JSON type and spelling it has', async (t) => {
  const server = await listenServer(t);
  const gateway = await openGateway(t, { one: remote(server.server.url) });
  for (const id of ['0', '-7', '9007199254740993', '1.50', '"1"', '"\\u0061 b"', '""']) {
    const stream = await subscribe(gateway.url(), { toolsListChanged: true }, id);
    assert.ok((await text(stream)).includes(`"${SUBSCRIPTION_ID}":${id}}`), id);
    server.last.changed();
    assert.ok((await text(stream)).includes(`"${SUBSCRIPTION_ID}":${id}}`), id);
    stream.drop();
    await server.until(() => server.open.length === 0);
  }
});

test('everything but the stamp stays as the server wrote it', async (t) => {
  const server = await listenServer(t);
  const gateway = await openGateway(t, { one: remote(server.server.url) });
  const { stream } = await subscribed(gateway.url(), { ...LISTS, resourceSubscriptions: ['a:b'] }, '"x"');
  const id = String(server.last.message.id);
  const cases = [
    [
      `{"method":"notifications/resources/updated", "params": {"uri":"a:b","big":9007199254740993,"_meta":{"v":1e2,"${SUBSCRIPTION_ID}":${id}}},"jsonrpc":"2.0","more":[]}`,
      `{"method":"notifications/resources/updated", "params": {"uri":"a:b","big":9007199254740993,"_meta":{"v":1e2,"${SUBSCRIPTION_ID}":"x"}},"jsonrpc":"2.0","more":[]}`,
    ],
    [
      '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
      `{"params":{"_meta":{"${SUBSCRIPTION_ID}":"x"}},"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
    ],
    [
      '{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{ "é":"\\u00e9"}}',
      `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"_meta":{"${SUBSCRIPTION_ID}":"x"}, "é":"\\u00e9"}}`,
    ],
    [
      '{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":{}}}',
      `{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":{"${SUBSCRIPTION_ID}":"x"}}}`,
    ],
  ] as const;
  for (const [sent, told] of cases) {
    server.last.say(sent);
    assert.equal(await text(stream), told);
  }
});

test('each agent hears what it asked for, and nothing else', async (t) => {
  const server = await listenServer(t);
  const gateway = await openGateway(t, { one: remote(server.server.url) });
  const tools = await subscribed(gateway.url(), { toolsListChanged: true });
  const rest = await subscribed(gateway.url(), {
    promptsListChanged: true,
    resourceSubscriptions: ['file:///a/'],
  });
  const { last } = server;
  last.updated('file:///b');
  last.updated('file:///a/b');
  last.changed('resources');
  last.changed('tools');
  last.changed('prompts');
  assert.equal(await news(rest.stream), 'resources/updated file:///a/b');
  assert.equal(await news(rest.stream), 'prompts/list_changed');
  assert.equal(await news(tools.stream), 'tools/list_changed');
});

test('two subscriptions of one agent are two, each with its own id', async (t) => {
  const server = await listenServer(t);
  const gateway = await openGateway(t, { one: remote(server.server.url) });
  const first = await subscribed(gateway.url(), { toolsListChanged: true }, '1');
  const second = await subscribed(gateway.url(), { toolsListChanged: true }, '"1"');
  server.last.changed();
  const ids = [await first.stream.message(), await second.stream.message()].map(
    (message) => message?.params._meta[SUBSCRIPTION_ID],
  );
  assert.deepEqual(ids, [1, '1']);
  first.stream.drop();
  await gateway.happened('session_closed');
  gateway.clock.advance(250);
  server.last.changed();
  assert.equal(await news(second.stream), 'tools/list_changed');
});

test('a storm of changes is told twice: the first and the last', async (t) => {
  const server = await listenServer(t);
  const gateway = await openGateway(t, { one: remote(server.server.url) });
  const { stream } = await subscribed(gateway.url(), LISTS);
  for (let n = 0; n < 200; n++) server.last.tell('notifications/tools/list_changed', { n });
  server.last.changed('prompts');
  assert.equal((await stream.message())?.params.n, 0);
  assert.equal(await news(stream), 'prompts/list_changed');
  gateway.clock.advance(249);
  server.last.changed('resources');
  assert.equal(await news(stream), 'resources/list_changed');
  gateway.clock.advance(1);
  assert.equal((await stream.message())?.params.n, 199);
});

test('what is cached is forgotten before any agent hears of the change', async (t) => {
  const server = await listenServer(t);
  const { core } = openCore(t, { one: remote(server.server.url) });
  const order: string[] = [];
  core.changes.onChange(({ reason, kinds, uri }) => order.push(`${reason} ${kinds} ${uri ?? ''}`));
  const agent = localAgent('a');
  const modern = { ...agent, profile: { ...agent.profile, revision: '2026-07-28' } };
  const filter = { notifications: { toolsListChanged: true, resourceSubscriptions: ['a:b'] } };
  await new Promise<void>((done) => {
    const listen = {
      ...exchange(modern, caller(), 'subscriptions/listen', filter),
      era: 'modern' as const,
      notify: ({ method }: { readonly method: string }) => {
        order.push(method);
        if (method === ACKNOWLEDGED) {
          server.last.changed();
          server.last.updated('a:b');
        }
        if (method === 'notifications/resources/updated') done();
      },
    };
    core.handle(listen).catch(() => {});
  });
  assert.deepEqual(order, [
    ACKNOWLEDGED,
    'list_changed tools ',
    'notifications/tools/list_changed',
    'updated resources a:b',
    'notifications/resources/updated',
  ]);
});

test('a malformed filter is refused and nothing is asked of the server', async (t) => {
  const server = await listenServer(t);
  const gateway = await openGateway(t, { one: remote(server.server.url) });
  const bad = [
    '{}',
    '{"notifications":null}',
    '{"notifications":[]}',
    '{"notifications":{"toolsListChanged":1}}',
    '{"notifications":{"resourceSubscriptions":"a:b"}}',
    '{"notifications":{"resourceSubscriptions":[1]}}',
    '{"notifications":{"toolsListChanged":true,"toolsListChanged":false}}',
    '{"notifications":{},"notifications":{}}',
  ];
  const meta = JSON.stringify(JSON.parse(modernText('x', '1')).params._meta);
  for (const params of bad) {
    const whole = params === '{}' ? `{"_meta":${meta}}` : `{"_meta":${meta},${params.slice(1)}`;
    const body = `{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":${whole}}`;
    const answers = await (await postModern(gateway.url(), body)).rest();
    assert.equal(answers.at(-1)?.error?.code, -32602, params);
    assert.equal(answers.at(-1)?.id, 5);
  }
  assert.equal(server.all.length, 0);
});

test('a filter that asks for nothing is acknowledged as such and stays open', async (t) => {
  const server = await listenServer(t);
  const gateway = await openGateway(t, { one: remote(server.server.url) });
  const { stream, honoured } = await subscribed(gateway.url(), { toolsListChanged: false });
  assert.deepEqual(honoured, {});
  assert.equal(server.all.length, 0);
  stream.drop();
});

test('only what the server announces is asked of it', async (t) => {
  const discovered = JSON.stringify({
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: { listChanged: true }, prompts: {}, resources: { listChanged: false } },
    ttlMs: 0,
    cacheScope: 'private',
  });
  const server = await listenServer(t, {}, discovered);
  const gateway = await openGateway(t, { one: remote(server.server.url) });
  const { honoured } = await subscribed(gateway.url(), { ...LISTS, resourceSubscriptions: ['a:b'] });
  assert.deepEqual(server.last.filter, { toolsListChanged: true });
  assert.deepEqual(honoured, { toolsListChanged: true });
});

test('what a server honours unasked is not acknowledged to anybody', async (t) => {
  const server = await listenServer(t);
  server.onListen = (one) => one.acknowledge({ ...LISTS, resourceSubscriptions: ['other:'] });
  const gateway = await openGateway(t, { one: remote(server.server.url) });
  const { honoured } = await subscribed(gateway.url(), { toolsListChanged: true });
  assert.deepEqual(honoured, { toolsListChanged: true });
});

test('a notification whose params are ambiguous purges, is told to nobody, and breaks nothing', async (t) => {
  const server = await listenServer(t);
  const gateway = await openGateway(t, { one: remote(server.server.url) });
  const { stream } = await subscribed(gateway.url(), LISTS);
  const head = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":';
  server.last.changed('tools');
  assert.equal(await news(stream), 'tools/list_changed');
  for (const params of [
    '[]',
    '{"_meta":{},"_meta":{}}',
    `{"_meta":{"${SUBSCRIPTION_ID}":1,"${SUBSCRIPTION_ID}":2}}`,
  ])
    server.last.say(`${head}${params}}`);
  await gateway.happened('message_dropped', 3);
  gateway.clock.advance(250);
  server.last.changed('prompts');
  assert.equal(await news(stream), 'prompts/list_changed');
});
