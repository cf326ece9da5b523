import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { PATIENCE } from '../support/forwarding.js';
import { McpServer, type McpServerOptions, Refusal } from '../support/mcp-server.js';
import { modernText } from '../support/modern-text.js';
import { CHANGES, MODERN, officialListener, officialServer, WATCHED } from '../support/official-listener.js';
import { openGateway, type PoolBench, passUntil, remote } from '../support/pool-bench.js';
import {
  ACKNOWLEDGED,
  news,
  postModern,
  SUBSCRIPTION_ID,
  subscribe,
  subscribed,
} from '../support/subscriptions.js';

const LISTS = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };

/** A gateway before a legacy server that takes subscriptions, unless `options` say otherwise. */
async function bench(
  t: TestContext,
  options: McpServerOptions = {},
): Promise<{ readonly server: McpServer; readonly gateway: PoolBench }> {
  const on = { 'resources/subscribe': () => '{}', 'resources/unsubscribe': () => '{}', ...options.on };
  const server = await McpServer.start({ ...options, on });
  t.after(() => server.close());
  const gateway = await openGateway(t, { one: remote(server.url) });
  return { server, gateway };
}

/** An agent's subscription, once the server's general stream stands. */
async function listening(server: McpServer, ...given: Parameters<typeof subscribed>) {
  const opened = await subscribed(...given);
  await server.until(() => server.openStreams > 0);
  return opened;
}

test('a modern agent is acknowledged what a legacy server announces of what it asked', async (t) => {
  const { server, gateway } = await bench(t, {
    capabilities: { tools: { listChanged: true }, prompts: {}, resources: { subscribe: true } },
  });
  const stream = await subscribe(
    gateway.url(),
    { ...LISTS, resourceSubscriptions: ['a:1'], taskIds: ['t'] },
    '"x"',
  );
  const first = await stream.message();
  assert.equal(first?.method, ACKNOWLEDGED);
  assert.deepEqual(first?.params, {
    _meta: { [SUBSCRIPTION_ID]: 'x' },
    notifications: { toolsListChanged: true, resourceSubscriptions: ['a:1'] },
  });
  assert.equal(server.initialized.length, 1);
});

test('what a legacy server tells is stamped with the id of the agent, and nothing that was not asked for is told', async (t) => {
  const { server, gateway } = await bench(t);
  const { stream } = await listening(server, gateway.url(), { toolsListChanged: true }, '9007199254740993');
  server.broadcast('notifications/prompts/list_changed');
  server.broadcast('notifications/resources/updated', { uri: 'a:1' });
  server.broadcast('notifications/message', { level: 'info', data: 'x' });
  server.broadcast('notifications/tools/list_changed', { n: 1 });
  const event = await stream.next();
  assert.equal(
    event?.data,
    `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"${SUBSCRIPTION_ID}":9007199254740993},"n":1}}`,
  );
});

test('resources are subscribed to in the name of the agent, and those that the server refuses are left out', async (t) => {
  const { server, gateway } = await bench(t, {
    on: {
      'resources/subscribe': ({ message }) => {
        if (message.params.uri === 'bad:') throw new Refusal(-32602, 'no such resource');
        return '{}';
      },
    },
  });
  const uris = ['a:1', 'bad:', 'b:/'];
  const { stream, honoured } = await listening(server, gateway.url(), { resourceSubscriptions: uris });
  assert.deepEqual(
    new Set((honoured as { resourceSubscriptions: string[] }).resourceSubscriptions),
    new Set(['a:1', 'b:/']),
  );
  for (const uri of ['bad:', 'a:12', 'b:/c', 'a:1'])
    server.broadcast('notifications/resources/updated', { uri });
  assert.equal(await news(stream), 'resources/updated b:/c');
  assert.equal(await news(stream), 'resources/updated a:1');
});

test('news that come on the stream of a call reach the subscriptions of its agent', async (t) => {
  const { server, gateway } = await bench(t, {
    on: {
      'tools/call': ({ notify }) => {
        notify('notifications/resources/updated', { uri: 'a:1' });
        notify('notifications/tools/list_changed');
        return '{"content":[]}';
      },
    },
  });
  const filter = { resourceSubscriptions: ['a:1'], toolsListChanged: true };
  const { stream } = await listening(server, gateway.url(), filter);
  const call = modernText('tools/call', '1', { name: 'a', arguments: {} });
  const answer = await (await postModern(gateway.url(), call, { 'mcp-name': 'a' })).text();
  assert.ok(!answer.includes('notifications/'), answer);
  assert.deepEqual([await news(stream), await news(stream)], ['resources/updated a:1', 'tools/list_changed']);
});

test('a subscription that is given up before its acknowledgement leaves nothing at the server', async (t) => {
  const held: (() => void)[] = [];
  const { server, gateway } = await bench(t, {
    on: { 'resources/subscribe': () => new Promise<string>((resolve) => held.push(() => resolve('{}'))) },
  });
  const stream = await subscribe(gateway.url(), { resourceSubscriptions: ['a:1'] });
  await server.until(() => server.count('resources/subscribe') === 1);
  stream.drop();
  await gateway.happened('session_closed');
  held.pop()?.();
  await server.until(() => server.count('resources/unsubscribe') === 1);
});

test('many resources are subscribed to a few at a time', async (t) => {
  let [running, most] = [0, 0];
  const { gateway } = await bench(t, {
    on: {
      'resources/subscribe': async () => {
        most = Math.max(most, ++running);
        await new Promise(setImmediate);
        running--;
        return '{}';
      },
    },
  });
  const uris = Array.from({ length: 100 }, (_, n) => `a:${n}`);
  const { honoured } = await subscribed(gateway.url(), { resourceSubscriptions: uris });
  assert.equal((honoured as { resourceSubscriptions: string[] }).resourceSubscriptions.length, 100);
  assert.ok(most <= 16, `${most} at once`);
});

test('a resource stays subscribed to until the last subscription of any agent ends', async (t) => {
  const { server, gateway } = await bench(t);
  const first = await listening(server, gateway.url(), { resourceSubscriptions: ['a:1'] }, '1');
  const second = await listening(
    server,
    gateway.url(),
    { resourceSubscriptions: ['a:1'], toolsListChanged: true },
    '2',
  );
  first.stream.drop();
  await gateway.happened('session_closed');
  server.broadcast('notifications/resources/updated', { uri: 'a:1' });
  assert.equal(await news(second.stream), 'resources/updated a:1');
  assert.equal(server.count('resources/unsubscribe'), 0);
  second.stream.drop();
  await server.until(() => server.count('resources/unsubscribe') === 1);
});

test('two subscriptions of one agent are independent, also under one id', async (t) => {
  const { server, gateway } = await bench(t);
  const first = await listening(server, gateway.url(), { toolsListChanged: true });
  const second = await listening(server, gateway.url(), { toolsListChanged: true, promptsListChanged: true });
  server.broadcast('notifications/tools/list_changed');
  assert.equal(await news(first.stream), 'tools/list_changed');
  assert.equal(await news(second.stream), 'tools/list_changed');
  first.stream.drop();
  await gateway.happened('session_closed');
  server.broadcast('notifications/prompts/list_changed');
  assert.equal(await news(second.stream), 'prompts/list_changed');
});

test('what comes before the acknowledgement is told behind it', async (t) => {
  const { server, gateway } = await bench(t, {
    on: {
      'resources/subscribe': async ({ message }) => {
        await server.until(() => server.openStreams > 0);
        server.broadcast('notifications/tools/list_changed', { n: 1 });
        server.broadcast('notifications/resources/updated', { uri: message.params.uri });
        server.broadcast('notifications/prompts/list_changed');
        return '{}';
      },
    },
  });
  const { stream } = await subscribed(gateway.url(), {
    toolsListChanged: true,
    resourceSubscriptions: ['a:1'],
  });
  assert.deepEqual([await news(stream), await news(stream)], ['tools/list_changed', 'resources/updated a:1']);
});

test('a storm of changes is told twice: the first and the last', async (t) => {
  const { server, gateway } = await bench(t);
  const { stream } = await listening(server, gateway.url(), LISTS);
  for (let n = 0; n < 200; n++) server.broadcast('notifications/tools/list_changed', { n });
  server.broadcast('notifications/prompts/list_changed');
  assert.equal((await stream.message())?.params.n, 0);
  assert.equal(await news(stream), 'prompts/list_changed');
  gateway.clock.advance(250);
  assert.equal((await stream.message())?.params.n, 199);
});

test('a changed list that is ambiguous, held back in a burst, breaks nothing', async (t) => {
  const { server, gateway } = await bench(t);
  const { stream } = await listening(server, gateway.url(), LISTS);
  server.broadcast('notifications/tools/list_changed');
  assert.equal(await news(stream), 'tools/list_changed');
  server.broadcast('notifications/tools/list_changed', []);
  server.broadcast('notifications/prompts/list_changed');
  assert.equal(await news(stream), 'prompts/list_changed');
  gateway.clock.advance(250);
  server.broadcast('notifications/resources/list_changed');
  assert.equal(await news(stream), 'resources/list_changed');
});

test('what is cached is renewed by the time the agent hears of the change', async (t) => {
  const { server, gateway } = await bench(t);
  const { stream } = await listening(server, gateway.url(), LISTS);
  const list = async () => (await postModern(gateway.url(), modernText('tools/list', '1'))).text();
  await list();
  await list();
  assert.equal(server.count('tools/list'), 1);
  server.broadcast('notifications/tools/list_changed');
  assert.equal(await news(stream), 'tools/list_changed');
  await list();
  assert.equal(server.count('tools/list'), 2);
});

test('an agent that listens outlives the loss of the session: it hears that lists may have changed', async (t) => {
  const { server, gateway } = await bench(t);
  const { stream } = await listening(server, gateway.url(), {
    toolsListChanged: true,
    resourceSubscriptions: ['a:1'],
  });
  server.forgetSessions();
  await passUntil(gateway.clock, () => server.initialized.length === 2);
  assert.equal(await news(stream), 'tools/list_changed');
  await server.until(() => server.count('resources/subscribe') === 2 && server.openStreams > 0);
  server.broadcast('notifications/resources/updated', { uri: 'a:1' });
  assert.equal(await news(stream), 'resources/updated a:1');
});

test('a server that asks outside of any call is answered that nobody can be asked', async (t) => {
  const { server, gateway } = await bench(t);
  await listening(server, gateway.url(), LISTS);
  const answer = await server.askOnStream('roots/list');
  assert.ok(answer.error);
});

test('a malformed filter is refused, and the server is not asked', async (t) => {
  const { server, gateway } = await bench(t);
  const stream = await subscribe(gateway.url(), { toolsListChanged: 'yes' });
  assert.equal((await stream.rest()).at(-1)?.error?.code, -32602);
  assert.equal(server.count('resources/subscribe'), 0);
});

test('an error that the server answers to initialize is the answer', async (t) => {
  const { gateway } = await bench(t, {
    greet: () => {
      throw new Refusal(-32000, 'not today');
    },
  });
  const stream = await subscribe(gateway.url(), LISTS, '"x"');
  const answer = (await stream.rest()).at(-1);
  assert.equal(answer?.id, 'x');
  assert.match(answer?.error?.message ?? '', /not today/);
});

test('official clients hear of an official legacy server what they asked for', PATIENCE, async (t) => {
  const url = await officialServer(t, { legacyOnly: true });
  const { client, heard, told } = await officialListener(t, url, MODERN);
  const other = await officialListener(t, url, MODERN);
  const subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: [WATCHED] });
  assert.deepEqual(subscription.honoredFilter, { toolsListChanged: true, resourceSubscriptions: [WATCHED] });
  await other.client.callTool({ name: CHANGES.prompts });
  await other.client.callTool({ name: CHANGES.resource });
  await heard(`resources/updated ${WATCHED}`);
  await other.client.callTool({ name: CHANGES.tools });
  await heard('tools/list_changed');
  assert.ok(!told.all.includes('prompts/list_changed'));
  await subscription.close();
});
