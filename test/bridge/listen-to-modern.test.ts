import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Message } from '../../src/wire/message.js';
import { PATIENCE } from '../support/forwarding.js';
import type { Wire } from '../support/mcp-server.js';
import { CHANGES, officialListener, officialServer, WATCHED } from '../support/official-listener.js';
import {
  caller,
  errorOf,
  exchange,
  localAgent,
  openCore,
  openGateway,
  type PoolBench,
  passUntil,
  remote,
} from '../support/pool-bench.js';
import type { RawAgent } from '../support/raw-agent.js';
import { Happenings } from '../support/stdio-harness.js';
import { type ListenServer, listenServer, SUBSCRIPTION_ID } from '../support/subscriptions.js';

interface Bench {
  readonly server: ListenServer;
  readonly gateway: PoolBench;
}

/** A gateway before a server that knows nothing of `initialize`. */
async function bench(t: TestContext, discovered?: string, more: object = {}): Promise<Bench> {
  const server = await listenServer(t, {}, discovered);
  const gateway = await openGateway(t, { one: remote(server.server.url, { era: 'modern', ...more }) });
  return { server, gateway };
}

/** An agent that hears of lists. */
async function listening({ server, gateway }: Bench): Promise<RawAgent> {
  const agent = await gateway.agent();
  const count = server.all.length + 1;
  await agent.listen();
  await server.nth(count);
  // Behind the answer to this, the acknowledgement has come.
  await agent.request('ping');
  return agent;
}

const subscribe = (agent: RawAgent, uri: string) =>
  agent.request('resources/subscribe', JSON.stringify({ uri }));
const unsubscribe = (agent: RawAgent, uri: string) =>
  agent.request('resources/unsubscribe', JSON.stringify({ uri }));

/** What the agent was told, each in short. */
function heard(agent: RawAgent): string[] {
  return agent.general.map(short);
}

function short({ method, params }: Wire): string {
  return `${method?.replace('notifications/', '')}${params?.uri === undefined ? '' : ` ${params.uri}`}`;
}

async function hears(agent: RawAgent, news: string, times = 1): Promise<void> {
  await agent.until(() => heard(agent).filter((one) => one === news).length >= times);
}

test('the general stream of a legacy agent hears of every list that a modern server tells changes of', async (t) => {
  const { server, gateway } = await bench(t);
  const agent = await listening({ server, gateway });
  assert.deepEqual(server.last.filter, {
    toolsListChanged: true,
    promptsListChanged: true,
    resourcesListChanged: true,
  });
  for (const kind of ['tools', 'prompts', 'resources']) {
    server.last.changed(kind);
    await hears(agent, `${kind}/list_changed`);
  }
});

test('a legacy agent sees no stamp of a subscription, and every other byte', async (t) => {
  const { server, gateway } = await bench(t);
  const agent = await listening({ server, gateway });
  const id = server.last.message.id;
  const stamp = `"${SUBSCRIPTION_ID}":${id}`;
  server.last.say(
    `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{${stamp}}}}`,
  );
  server.last.say(
    `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"n":1,"_meta":{"v":2,${stamp}}}}`,
  );
  await hears(agent, 'prompts/list_changed');
  assert.deepEqual(agent.general, [
    { jsonrpc: '2.0', method: 'notifications/tools/list_changed', params: {} },
    { jsonrpc: '2.0', method: 'notifications/prompts/list_changed', params: { n: 1, _meta: { v: 2 } } },
  ]);
});

test('a subscription is answered when the server has agreed to it', async (t) => {
  const { server, gateway } = await bench(t);
  const agent = await listening({ server, gateway });
  server.onListen = () => {};
  let answered = false;
  const answer = subscribe(agent, 'a:1').finally(() => {
    answered = true;
  });
  const wider = await server.nth(2);
  assert.equal(answered, false);
  wider.acknowledge();
  assert.deepEqual((await answer).answer.result, {});
  server.last.updated('a:1');
  await hears(agent, 'resources/updated a:1');
});

test('resources that were subscribed to are told, once each, and no longer when they are unsubscribed from', async (t) => {
  const { server, gateway } = await bench(t);
  const agent = await listening({ server, gateway });
  for (const uri of ['a:/', 'a:/x', 'b:1']) assert.deepEqual((await subscribe(agent, uri)).answer.result, {});
  const { last } = server;
  last.updated('a:/x');
  last.updated('c:1');
  last.updated('b:1');
  await hears(agent, 'resources/updated b:1');
  assert.deepEqual(heard(agent), ['resources/updated a:/x', 'resources/updated b:1']);
  assert.deepEqual((await unsubscribe(agent, 'a:/')).answer.result, {});
  assert.deepEqual((await unsubscribe(agent, 'b:1')).answer.result, {});
  assert.deepEqual((await unsubscribe(agent, 'never:')).answer.result, {});
  server.last.updated('b:1');
  server.last.updated('a:/y');
  server.last.updated('a:/x');
  await hears(agent, 'resources/updated a:/x', 2);
  assert.deepEqual(heard(agent).slice(2), ['resources/updated a:/x']);
});

test('a resource that the server does not tell of is refused as a legacy server refuses it', async (t) => {
  const { server, gateway } = await bench(t);
  const agent = await listening({ server, gateway });
  server.onListen = (one) => one.acknowledge({ toolsListChanged: true });
  const { code, message } = errorOf(await subscribe(agent, 'a:1'));
  assert.equal(code, -32602);
  assert.match(message, /a:1/);
  server.last.changed('tools');
  await hears(agent, 'tools/list_changed');
});

test('a server that offers no subscriptions refuses every resource without being asked', async (t) => {
  const discovered = JSON.stringify({
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: {}, resources: {} },
    ttlMs: 0,
    cacheScope: 'private',
  });
  const { server, gateway } = await bench(t, discovered);
  const agent = await gateway.agent();
  await agent.listen();
  assert.equal(errorOf(await subscribe(agent, 'a:1')).code, -32602);
  assert.equal(server.all.length, 0);
});

test('a list and a resource that begin at once are both told', async (t) => {
  const { server, gateway } = await bench(t);
  const agent = await gateway.agent();
  const uris = ['a:1', 'a:2', 'a:3'];
  const answers = await Promise.all([agent.listen(), ...uris.map((uri) => subscribe(agent, uri))]);
  assert.equal(answers.length, 4);
  const all = () => [...(server.last.filter.resourceSubscriptions ?? [])].sort();
  await server.until(() => all().length === 3 && server.last.filter.toolsListChanged === true);
  await agent.request('ping');
  for (const uri of uris) server.last.updated(uri);
  server.last.changed('tools');
  for (const uri of uris) await hears(agent, `resources/updated ${uri}`);
  await hears(agent, 'tools/list_changed');
});

test('an agent that leaves takes its subscriptions along, and nobody else’s', async (t) => {
  const { server, gateway } = await bench(t);
  const first = await listening({ server, gateway });
  const second = await gateway.agent();
  await second.listen();
  await subscribe(second, 'a:1');
  await first.leave();
  server.last.changed('prompts');
  await hears(second, 'prompts/list_changed');
  await second.leave();
  gateway.clock.advance(1_000);
  await server.until(() => server.open.length === 0);
});

test('a storm of changes is told twice: the first and the last', async (t) => {
  const { server, gateway } = await bench(t);
  const agent = await listening({ server, gateway });
  for (let n = 0; n < 200; n++) server.last.tell('notifications/tools/list_changed', { n });
  server.last.changed('prompts');
  await hears(agent, 'prompts/list_changed');
  // A subscription that comes meanwhile loses nothing of what is held back.
  await subscribe(agent, 'a:1');
  gateway.clock.advance(250);
  await hears(agent, 'tools/list_changed', 2);
  const told = agent.general.filter(({ method }) => method === 'notifications/tools/list_changed');
  assert.deepEqual(
    told.map(({ params }) => params.n),
    [0, 199],
  );
});

test('a legacy agent hears of what it may have missed when the stream of the server was lost', async (t) => {
  const { server, gateway } = await bench(t);
  const agent = await listening({ server, gateway });
  await subscribe(agent, 'a:1');
  gateway.clock.advance(1_000);
  await server.until(() => server.open.length === 1);
  const count = server.all.length;
  server.last.cut();
  await passUntil(gateway.clock, () => server.all.length > count, 250);
  for (const kind of ['tools', 'prompts', 'resources']) await hears(agent, `${kind}/list_changed`);
  await hears(agent, 'resources/updated a:1');
  gateway.clock.advance(250);
  server.last.changed('tools');
  await hears(agent, 'tools/list_changed', 2);
});

test('an agent that came while the server was down hears of it as soon as it is back', async (t) => {
  const { server, gateway } = await bench(t);
  const agent = await gateway.agent();
  server.onListen = (one) => one.cut();
  await agent.listen();
  await passUntil(gateway.clock, () => server.all.length >= 3, 250);
  let isBack = false;
  server.onListen = (one) => {
    one.acknowledge();
    isBack = true;
  };
  await passUntil(gateway.clock, () => isBack, 250);
  server.last.changed('tools');
  await hears(agent, 'tools/list_changed');
});

test('an agent is served over a new connection when the old one was closed, and hears that it was', async (t) => {
  const server = await listenServer(t);
  const { core, clock } = openCore(t, { one: remote(server.server.url, { era: 'modern' }) });
  const told = new Happenings<string>();
  const agent = { ...localAgent('a', '{}', true), notify: ({ method }: Message) => told.add(method) };
  core.bridge.listen('one', agent, caller());
  await core.handle(exchange(agent, caller(), 'resources/subscribe', { uri: 'a:1' }));
  await core.pool.close('one');
  await passUntil(clock, () => told.all.length === 4, 250);
  assert.deepEqual(
    [...told.all].sort(),
    ['prompts/list_changed', 'resources/list_changed', 'resources/updated', 'tools/list_changed'].map(
      (news) => `notifications/${news}`,
    ),
  );
  core.bridge.leave(agent);
  clock.advance(1_000);
  await server.until(() => server.open.length === 0);
});

test('official legacy clients hear of an official server of 2026-07-28', PATIENCE, async (t) => {
  const url = await officialServer(t, { modernOnly: true });
  const { client, heard: hears } = await officialListener(t, url, 'legacy');
  const other = await officialListener(t, url, 'legacy');
  await client.subscribeResource({ uri: WATCHED });
  await other.client.callTool({ name: CHANGES.resource });
  await hears(`resources/updated ${WATCHED}`);
  await other.client.callTool({ name: CHANGES.tools });
  await hears('tools/list_changed');
  await client.unsubscribeResource({ uri: WATCHED });
  await other.client.callTool({ name: CHANGES.resource });
  await other.client.callTool({ name: CHANGES.prompts });
  await hears('prompts/list_changed');
});
