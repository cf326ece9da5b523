import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listenText, modernMeta } from '../support/modern-text.js';
import { openGateway, remote } from '../support/pool-bench.js';
import {
  ACKNOWLEDGED,
  listenServer,
  news,
  postModern,
  SUBSCRIPTION_ID,
  subscribed,
} from '../support/subscriptions.js';

const TASK = 'notifications/tasks';

async function bench(t: Parameters<typeof listenServer>[0]) {
  const server = await listenServer(t);
  const gateway = await openGateway(t, { one: remote(server.server.url) });
  return { server, gateway };
}

test('members of a filter that only the server knows go to it as they are, in the agent’s own name', async (t) => {
  const { server, gateway } = await bench(t);
  const _meta = modernMeta({
    capabilities: { extensions: { x: {} } },
    progressToken: 5,
    more: { vendor: 1 },
  });
  const filter = '{"taskIds":["t1", 9007199254740993],"toolsListChanged":true, "é":{}}';
  const params = `{"_meta":${JSON.stringify(_meta)},"notifications":${filter}}`;
  const stream = await postModern(
    gateway.url(),
    `{"jsonrpc":"2.0","id":"x","method":"subscriptions/listen","params":${params}}`,
  );
  const first = await stream.message();
  assert.equal(first?.method, ACKNOWLEDGED);
  assert.deepEqual(first?.params._meta, { [SUBSCRIPTION_ID]: 'x' });
  assert.deepEqual(Object.keys(first?.params.notifications), ['toolsListChanged', 'taskIds', 'é']);
  const own = server.all.find(({ filter: { taskIds } }) => taskIds);
  assert.ok(own?.raw.includes('"notifications":{"taskIds":["t1", 9007199254740993],"é":{}}'), own?.raw);
  const { progressToken: _, ...meta } = JSON.parse(JSON.stringify(_meta)) as Record<string, unknown>;
  assert.deepEqual(own?.message.params._meta, meta);
});

test('what comes of them is told to the agent that asked, under its own id, and to nobody else', async (t) => {
  const { server, gateway } = await bench(t);
  const first = await subscribed(gateway.url(), { taskIds: ['t1'], toolsListChanged: true }, '"1"');
  const second = await subscribed(gateway.url(), { taskIds: ['t2'], toolsListChanged: true }, '2');
  const [one, two] = ['t1', 't2'].map((id) => server.all.find(({ filter }) => filter.taskIds?.includes(id)));
  const shared = server.all.find(({ filter }) => filter.toolsListChanged);
  one?.tell(TASK, { taskId: 't1' });
  two?.tell(TASK, { taskId: 't2' });
  for (const [{ stream }, id, taskId] of [
    [first, '1', 't1'],
    [second, 2, 't2'],
  ] as const) {
    const told = await stream.message();
    assert.equal(told?.method, TASK);
    assert.equal(told?.params.taskId, taskId);
    assert.equal(told?.params._meta[SUBSCRIPTION_ID], id);
  }
  shared?.changed();
  assert.equal(await news(first.stream), 'tools/list_changed');
  assert.equal(await news(second.stream), 'tools/list_changed');
});

test('what comes of them before the agent is acknowledged is told behind that', async (t) => {
  const { server, gateway } = await bench(t);
  server.onListen = (one) => {
    if (one.filter.taskIds) {
      one.acknowledge();
      one.tell(TASK, { taskId: 't1' });
    }
  };
  const stream = postModern(gateway.url(), listenText('1', { taskIds: ['t1'], toolsListChanged: true }));
  (await server.nth(2)).acknowledge();
  assert.equal((await (await stream).message())?.method, ACKNOWLEDGED);
  assert.equal((await (await stream).message())?.method, TASK);
});

test('a server that does not know them honours the rest', async (t) => {
  const { server, gateway } = await bench(t);
  server.onListen = (one) => {
    one.acknowledge(one.filter.toolsListChanged ? { toolsListChanged: true } : {});
    if (!one.filter.toolsListChanged) one.end();
  };
  const { stream, honoured } = await subscribed(gateway.url(), { taskIds: ['t1'], toolsListChanged: true });
  assert.deepEqual(honoured, { toolsListChanged: true });
  server.last.changed();
  assert.equal(await news(stream), 'tools/list_changed');
});

test('a refusal of them is the agent’s answer, byte for byte', async (t) => {
  const { server, gateway } = await bench(t);
  server.onListen = (one) => one.refuse(-32021, 'Missing capability');
  const stream = await postModern(gateway.url(), listenText('7', { taskIds: ['t1'] }));
  const [answer] = await stream.rest();
  assert.deepEqual(answer, {
    jsonrpc: '2.0',
    id: 7,
    error: { code: -32021, message: 'Missing capability' },
  });
});

test('when the server ends them the agent’s subscription ends, for nobody knows what it would miss', async (t) => {
  const { server, gateway } = await bench(t);
  const gentle = await subscribed(gateway.url(), { taskIds: ['t1'] }, '1');
  server.last.end();
  assert.deepEqual(await gentle.stream.rest(), [
    { jsonrpc: '2.0', id: 1, result: { resultType: 'complete', _meta: { [SUBSCRIPTION_ID]: 1 } } },
  ]);
  const cut = await subscribed(gateway.url(), { taskIds: ['t1'] }, '2');
  server.last.cut();
  assert.equal((await cut.stream.rest()).at(-1)?.error?.code, -32603);
});

test('the agent that goes takes its own stream with it', async (t) => {
  const { server, gateway } = await bench(t);
  const { stream } = await subscribed(gateway.url(), { taskIds: ['t1'], toolsListChanged: true });
  assert.equal(server.open.length, 2);
  stream.drop();
  await server.until(() => server.open.length === 0);
});
