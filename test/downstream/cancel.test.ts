import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gate, notificationText, TestAgent, toolOf, withGateway } from '../support/agent-gateway.js';
import type { ServerCall } from '../support/mcp-server.js';

const CANCELLED = 'notifications/cancelled';
const cancel = (requestId: unknown) => notificationText(CANCELLED, { requestId, reason: 'enough' });

/** Every method waits until it is let go; `told` calls say something first. */
function waiting() {
  const release = gate();
  const ids: (string | number | undefined)[] = [];
  const wait = async (call: ServerCall) => {
    ids.push(call.message.id);
    if (toolOf(call.message) === 'told') call.notify('notifications/message', { level: 'info', data: 1 });
    await release.opened;
    return '{"content":[],"tools":[],"prompts":[],"completion":{"values":[]}}';
  };
  const methods = ['tools/call', 'tools/list', 'prompts/get', 'completion/complete'];
  return { release, ids, server: { on: Object.fromEntries(methods.map((method) => [method, wait])) } };
}

test('each method can be cancelled: the server is told with its own id, and the POST ends without a response', async () => {
  for (const method of ['tools/call', 'tools/list', 'prompts/get', 'completion/complete']) {
    const { ids, server } = waiting();
    await withGateway({ server }, async ({ url, server: upstream }) => {
      const agent = await TestAgent.connect(url());
      const pending = agent.open(`{"jsonrpc":"2.0","id":"q","method":"${method}","params":{}}`);
      await upstream.until(() => upstream.count(method) === 1);
      assert.equal((await agent.post(cancel('q'))).status, 202);
      const answer = await pending;
      assert.equal(answer.status, 200, method);
      assert.equal(answer.headers['content-type'], 'text/event-stream');
      assert.equal(await answer.text(), '');
      await upstream.until(() => upstream.notifications.some((message) => message.method === CANCELLED));
      const told = upstream.notifications.find((message) => message.method === CANCELLED);
      assert.deepEqual(told?.params, { requestId: ids[0], reason: 'enough' });
    })();
  }
});

test('a cancelled call whose stream has begun ends it, and a late answer goes nowhere', async () => {
  const { release, server } = waiting();
  await withGateway({ server }, async ({ url, server: upstream }) => {
    const agent = await TestAgent.connect(url());
    const answer = await agent.call('told', '"\\u0071"');
    await answer.message();
    await agent.post(cancel('q'));
    assert.deepEqual(await answer.rest(), []);
    await upstream.until(() => upstream.notifications.some((message) => message.method === CANCELLED));
    release.open();
    assert.equal(
      (await agent.post('{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{}}')).status,
      200,
    );
  })();
});

test('a cancellation of nothing, of an answered request, or without an id is accepted and does nothing', async () => {
  const { release, server } = waiting();
  await withGateway({ server }, async ({ url, server: upstream }) => {
    const agent = await TestAgent.connect(url());
    release.open();
    await (await agent.call('x', '1')).text();
    for (const body of [cancel(1), cancel('1'), cancel(99), notificationText(CANCELLED)])
      assert.equal((await agent.post(body)).status, 202);
    await (await agent.call('x', '2')).text();
    assert.equal(
      upstream.notifications.some((message) => message.method === CANCELLED),
      false,
    );
  })();
});

test('a number and a string are two ids', async () => {
  const { release, server } = waiting();
  await withGateway({ server }, async ({ url, server: upstream }) => {
    const agent = await TestAgent.connect(url());
    const number = agent.call('x', '1');
    await upstream.until(() => upstream.count('tools/call') === 1);
    const text = agent.call('x', '"1"');
    await upstream.until(() => upstream.count('tools/call') === 2);
    await agent.post(cancel('1'));
    assert.equal(await (await text).text(), '');
    release.open();
    assert.equal((await (await number).json()).id, 1);
  })();
});

test('a cancellation that could mean two requests cancels neither', async () => {
  const { release, server } = waiting();
  await withGateway({ server }, async ({ url, server: upstream }) => {
    const agent = await TestAgent.connect(url());
    const both = [agent.call('x', '1'), agent.call('y', '1')];
    await upstream.until(() => upstream.count('tools/call') === 2);
    await agent.post(cancel(1));
    release.open();
    for (const pending of both) assert.equal((await (await pending).json()).id, 1);
  })();
});

test('one agent cannot cancel the request of another', async () => {
  const { release, server } = waiting();
  await withGateway({ server }, async ({ url, server: upstream }) => {
    const mine = await TestAgent.connect(url());
    const theirs = await TestAgent.connect(url());
    const pending = theirs.call('x', '1');
    await upstream.until(() => upstream.count('tools/call') === 1);
    await mine.post(cancel(1));
    release.open();
    assert.equal((await (await pending).json()).id, 1);
  })();
});

test('a server that withdraws its question withdraws it from the agent, with the id the agent knows', async () => {
  const asked: Promise<unknown>[] = [];
  const release = gate();
  const handler = async (call: ServerCall) => {
    asked.push(call.ask('elicitation/create', { message: 'Sure?' }));
    await release.opened;
    call.emit(
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"ask-1","reason":"late"}}',
    );
    return '{"content":[]}';
  };
  await withGateway({ server: { on: { 'tools/call': handler } } }, async ({ url }) => {
    const agent = await TestAgent.connect(url(), { capabilities: { elicitation: {} } });
    const answer = await agent.call('x');
    const question = await answer.message();
    release.open();
    const withdrawn = await answer.message();
    assert.equal(withdrawn?.method, CANCELLED);
    assert.deepEqual(withdrawn.params, { requestId: question?.id, reason: 'late' });
    assert.equal((await answer.message())?.id, 1);
  })();
});
