import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  callText,
  codeOf,
  gate,
  initializeText,
  notificationText,
  toolOf,
  withGateway,
} from '../support/agent-gateway.js';
import { type Incoming, open } from '../support/agent-http.js';
import type { ServerCall } from '../support/mcp-server.js';

const JSON_TYPE = { 'content-type': 'application/json' };
const REVISION = '2024-11-05';

class PairAgent {
  readonly stream: Incoming;
  readonly endpoint: string;

  constructor(stream: Incoming, endpoint: string) {
    this.stream = stream;
    this.endpoint = endpoint;
  }

  static async connect(
    url: string,
    options: { revision?: string; capabilities?: object } = {},
  ): Promise<PairAgent> {
    const stream = await open(url, { headers: { accept: 'text/event-stream' } });
    const endpoint = await stream.next();
    assert.equal(endpoint?.event, 'endpoint');
    const agent = new PairAgent(stream, new URL(endpoint.data ?? '', url).href);
    assert.equal(await agent.post(initializeText({ revision: REVISION, ...options }, '"init"')), 202);
    assert.equal((await stream.message())?.id, 'init');
    assert.equal(await agent.post(notificationText('notifications/initialized')), 202);
    return agent;
  }

  async post(body: string, headers: Record<string, string> = JSON_TYPE): Promise<number> {
    const answer = await open(this.endpoint, { method: 'POST', headers, body });
    await answer.text();
    return answer.status;
  }
}

function tools() {
  const release = gate();
  const handler = async (call: ServerCall) => {
    const name = toolOf(call.message);
    if (name === 'slow') await release.opened;
    if (name === 'log') call.notify('notifications/message', { level: 'info', data: 'first' });
    if (name === 'ask')
      return JSON.stringify({ content: [], structuredContent: (await call.ask('roots/list')).result });
    return JSON.stringify({ content: [], name });
  };
  return { release, server: { on: { 'tools/call': handler } } };
}

test('the endpoint event names the path as it is mounted, and everything comes on the stream', async () => {
  const { server } = tools();
  await withGateway({ server, ids: ['a b'] }, async ({ url, server: upstream }) => {
    for (const [mount, messages] of [
      ['/servers/a%20b/sse', '/servers/a%20b/messages'],
      ['/sse', '/messages'],
    ]) {
      const agent = await PairAgent.connect(url(mount), { capabilities: { roots: {} } });
      assert.equal(new URL(agent.endpoint).pathname, messages);
      await agent.post(callText('log', '7'));
      assert.equal((await agent.stream.next())?.event, 'message');
      assert.equal((await agent.stream.message())?.id, 7);
      await agent.post(callText('ask', '8'));
      const question = await agent.stream.message();
      assert.equal(question?.method, 'roots/list');
      await agent.post(JSON.stringify({ jsonrpc: '2.0', id: question.id, result: { roots: [] } }));
      assert.deepEqual((await agent.stream.message())?.result.structuredContent, { roots: [] });
      await upstream.until(() => upstream.openStreams > 0);
      upstream.broadcast('notifications/tools/list_changed');
      assert.equal((await agent.stream.message())?.method, 'notifications/tools/list_changed');
    }
  })();
});

test('two agents at once get their own answers, and one that comes back is a new one', async () => {
  const { server } = tools();
  await withGateway({ server }, async ({ url, gateway, event }) => {
    const one = await PairAgent.connect(url('/sse'));
    const two = await PairAgent.connect(url('/sse'));
    await Promise.all([one.post(callText('for-one', '1')), two.post(callText('for-two', '1'))]);
    assert.equal((await one.stream.message())?.result.name, 'for-one');
    assert.equal((await two.stream.message())?.result.name, 'for-two');
    assert.equal(gateway.sessions, 2);
    one.stream.drop();
    await event('session_closed');
    assert.equal(await one.post(callText('x')), 404);
    const again = await PairAgent.connect(url('/sse'));
    assert.notEqual(again.endpoint, one.endpoint);
    await two.post(callText('still', '2'));
    assert.equal((await two.stream.message())?.result.name, 'still');
  })();
});

test('an agent that is gone takes what it asked for along', async () => {
  const { server } = tools();
  await withGateway({ server }, async ({ url, server: upstream, gateway, event }) => {
    const agent = await PairAgent.connect(url('/sse'));
    await agent.post(callText('slow'));
    await upstream.until(() => upstream.count('tools/call') === 1);
    agent.stream.drop();
    await upstream.until(() =>
      upstream.notifications.some(({ method }) => method === 'notifications/cancelled'),
    );
    await event('session_closed');
    assert.equal(gateway.sessions, 0);
  })();
});

test('a cancelled request is never answered', async () => {
  const { release, server } = tools();
  await withGateway({ server }, async ({ url, server: upstream }) => {
    const agent = await PairAgent.connect(url('/sse'));
    await agent.post(callText('slow', '1'));
    await upstream.until(() => upstream.count('tools/call') === 1);
    await agent.post(notificationText('notifications/cancelled', { requestId: 1 }));
    await upstream.until(() =>
      upstream.notifications.some(({ method }) => method === 'notifications/cancelled'),
    );
    release.open();
    await agent.post(callText('next', '2'));
    assert.equal((await agent.stream.message())?.id, 2);
  })();
});

test(
  'a stray POST is refused and harms nobody',
  withGateway({ ids: ['one', 'two'] }, async ({ url }) => {
    const agent = await PairAgent.connect(url('/servers/one/sse'));
    const status = async (path: string, body = callText('x'), headers: Record<string, string> = JSON_TYPE) =>
      (await open(url(path), { method: 'POST', headers, body })).status;
    assert.equal(await status('/servers/one/messages'), 400);
    assert.equal(await status('/servers/one/messages?sessionId='), 400);
    assert.equal(await status('/servers/one/messages?sessionId=nobody'), 404);
    const { search } = new URL(agent.endpoint);
    assert.equal(await status(`/servers/two/messages${search}`), 404);
    assert.equal(await status(`/servers/one/messages${search}`, ''), 400);
    assert.equal(await status(`/servers/one/messages${search}`, '{'), 400);
    assert.equal(await status(`/servers/one/messages${search}`, '{}', { 'content-type': 'text/plain' }), 415);
    await agent.post('{"jsonrpc":"2.0","id":5,"method":"tools/list"}');
    assert.deepEqual((await agent.stream.message())?.id, 5);
  }),
);

test(
  'requests before initialize are refused, but for ping',
  withGateway({}, async ({ url, server }) => {
    const stream = await open(url('/sse'), { headers: { accept: 'text/event-stream' } });
    const agent = new PairAgent(stream, new URL((await stream.next())?.data ?? '', url()).href);
    await agent.post(callText('x', '1'));
    assert.equal(codeOf(await stream.message()), 'invalid_request');
    await agent.post('{"jsonrpc":"2.0","id":2,"method":"ping"}');
    assert.deepEqual((await stream.message())?.result, {});
    assert.equal(server.count('tools/call'), 0);
  }),
);

test(
  'a batch of the one revision that has them is answered message by message',
  withGateway({}, async ({ url }) => {
    const agent = await PairAgent.connect(url('/sse'), { revision: '2025-03-26' });
    const list = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`;
    assert.equal(await agent.post(`[${list(1)},${list(2)}]`), 202);
    const ids = [(await agent.stream.message())?.id, (await agent.stream.message())?.id];
    assert.deepEqual(ids.sort(), [1, 2]);
    const older = await PairAgent.connect(url('/sse'));
    assert.equal(await older.post(`[${list(1)}]`), 400);
  }),
);
