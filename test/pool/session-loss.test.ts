import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  HttpUpstream,
  JSON_BODY,
  LOSS_SHAPES,
  type LossShape,
  type OpenResponse,
  type Seen,
} from '../support/http-upstream.js';
import { Held, serve } from '../support/manager-bench.js';
import { Refusal } from '../support/mcp-server.js';
import {
  errorOf,
  namesOf,
  openGateway,
  passUntil,
  remote,
  says,
  textOf,
  toolText,
} from '../support/pool-bench.js';

const LIST_CHANGED = 'notifications/tools/list_changed';

/** An upstream with sessions that answers every method, and counts the calls that it ran. */
async function forgetful(t: TestContext) {
  const upstream = await HttpUpstream.start();
  t.after(() => upstream.stop());
  let ran = 0;
  upstream.serveSessions('/mcp', ({ json }: Seen, response: OpenResponse) => {
    if (json.method === 'tools/call') ran++;
    const result = {
      tools: [{ name: `list-${upstream.sessions.size}` }],
      content: [{ type: 'text', text: `${ran}` }],
    };
    response.play({ headers: JSON_BODY, chunks: [JSON.stringify({ jsonrpc: '2.0', id: json.id, result })] });
  });
  return { upstream, ran: () => ran };
}

for (const shape of Object.keys(LOSS_SHAPES) as LossShape[])
  test(`a session that the server gave up is begun anew without the agent noticing (${shape})`, async (t) => {
    const { upstream, ran } = await forgetful(t);
    const { agent, of } = await openGateway(t, { one: remote(upstream.url()) });
    const one = await agent();
    assert.equal(textOf(await one.call('count')), '1');
    upstream.expireSessions(shape);
    assert.equal(textOf(await one.call('count')), '2');
    assert.equal(ran(), 2);
    upstream.expireSessions(shape);
    assert.equal(namesOf(await one.request('tools/list')).length, 1);
    assert.equal(upstream.count('initialize'), 3);
    const starts = upstream.of('initialize').map(({ headers }) => headers['mcp-session-id']);
    assert.deepEqual(starts, [undefined, undefined, undefined]);
    assert.deepEqual(
      of('server_disconnected').map(({ reason }) => reason),
      ['lost', 'lost'],
    );
  });

test('ten calls that find the session gone begin one new session and all succeed', async (t) => {
  const { upstream, ran } = await forgetful(t);
  const { agent } = await openGateway(t, { one: remote(upstream.url()) });
  const one = await agent();
  upstream.expireSessions('404-json');
  const answers = await Promise.all(Array.from({ length: 10 }, () => one.call('count')));
  const counts = answers.map((answer) => Number(textOf(answer)));
  assert.deepEqual(
    counts.sort((a, b) => a - b),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
  );
  assert.equal(ran(), 10);
  assert.equal(upstream.count('initialize'), 2);
});

test('a call that is under way in a session that others find gone still gets its own answer', async (t) => {
  const calling = new Held<string>();
  const server = await serve(t, { stream: false, on: { 'tools/call': calling.next, ping: () => '{}' } });
  const { agent, of } = await openGateway(t, { one: remote(server.url) });
  const one = await agent();
  const slow = one.call('slow');
  await calling.received();
  server.forgetSessions();
  await one.request('ping');
  assert.equal(of('server_disconnected').length, 1);
  assert.equal(server.count('initialize'), 2);
  await calling.answer(toolText('at last'));
  assert.equal(textOf(await slow), 'at last');
  assert.equal(server.count('tools/call'), 1);
});

test('every group of agents recovers from the same loss on its own', async (t) => {
  const server = await serve(t, { on: { 'tools/call': ({ session }) => toolText(session) } });
  const servers = { one: remote(server.url), two: remote(server.url), three: remote(server.url) };
  const bench = await openGateway(t, servers);
  const agents = await Promise.all(['one', 'two', 'three'].map((id) => bench.agent({}, id)));
  server.forgetSessions();
  const sessions = await Promise.all(agents.map(async (agent) => textOf(await agent.call('which'))));
  assert.equal(new Set(sessions).size, 3);
  assert.equal(server.count('initialize'), 6);
});

const REFUSALS: Readonly<Record<string, Refusal>> = {
  'invalid params': new Refusal(-32602, 'Invalid params: unknown tool'),
  'invalid params that speak of a session': new Refusal(-32602, 'Session not found: s-12'),
  'an unknown method': new Refusal(-32601, 'Method not found'),
  'an internal error': new Refusal(-32603, 'connection closed'),
  'a code of its own': new Refusal(4711, 'fetch failed', { why: ['x'] }),
};
for (const [what, refusal] of Object.entries(REFUSALS))
  test(`a call that the server answers with ${what} runs once, and nothing is connected anew`, async (t) => {
    const server = await serve(t, {
      on: {
        'tools/call': () => {
          throw refusal;
        },
      },
    });
    const { agent } = await openGateway(t, { one: remote(server.url) });
    const { code, message, data } = errorOf(await (await agent()).call('any'));
    assert.deepEqual(
      { code, message, data },
      { code: refusal.code, message: refusal.message, data: refusal.data },
    );
    assert.equal(server.count('tools/call'), 1);
    assert.equal(server.count('initialize'), 1);
  });

test('what agents had subscribed to, and the level they wanted, is asked for again in the new session', async (t) => {
  const noted: string[] = [];
  const note = ({
    message,
    session,
  }: {
    message: { method?: string; params?: object };
    session?: string | undefined;
  }) => {
    noted.push(
      `${message.method} ${Object.values(message.params ?? {})[0]} ${session === lost ? 'old' : 'new'}`,
    );
    return '{}';
  };
  let lost: string | undefined;
  const server = await serve(t, {
    on: {
      'resources/subscribe': note,
      'logging/setLevel': note,
      'tools/call': ({ session }) => toolText(session),
    },
  });
  const { agent } = await openGateway(t, { one: remote(server.url) });
  const [one, two] = [await agent(), await agent()];
  lost = textOf(await one.call('which'));
  await one.request('resources/subscribe', '{"uri":"file:///a"}');
  await two.request('resources/subscribe', '{"uri":"file:///b"}');
  await two.request('logging/setLevel', '{"level":"error"}');
  server.forgetSessions();
  await one.call('which');
  await server.until(() => noted.length === 6);
  assert.deepEqual(noted.slice(3).sort(), [
    'logging/setLevel error new',
    'resources/subscribe file:///a new',
    'resources/subscribe file:///b new',
  ]);
});

test('after a session loss that only the notification stream shows, the agents that listen are told at once', async (t) => {
  const server = await serve(t);
  const { agent, clock, of } = await openGateway(t, { one: remote(server.url) });
  const one = await agent();
  await one.listen();
  await server.until(() => server.openStreams === 1);
  server.forgetSessions();
  await passUntil(clock, () => of('server_connected').length === 2);
  await one.until(() => one.general.some(says(LIST_CHANGED)));
  await server.until(() => server.openStreams === 1);
});

test('a gateway that was restarted answers 404 to the sessions of before, and never an empty list', async (t) => {
  const server = await serve(t, { on: { 'tools/list': () => '{"tools":[{"name":"a","inputSchema":{}}]}' } });
  const before = await openGateway(t, { one: remote(server.url) });
  const one = await before.agent({ token: 'A' });
  await one.request('tools/list');
  const after = await openGateway(t, { one: remote(server.url) });
  const headers = { 'mcp-session-id': one.session, authorization: 'Bearer A', accept: 'application/json' };
  const response = await fetch(after.url(), {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: '{"jsonrpc":"2.0","id":5,"method":"tools/list"}',
  });
  assert.equal(response.status, 404);
  const { id, error } = (await response.json()) as { id: number; error: { message: string } };
  assert.deepEqual([id, error.message], [5, 'Session not found']);
});
