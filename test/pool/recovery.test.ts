import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../src/base/clock.js';
import {
  EVENT_STREAM,
  HttpUpstream,
  JSON_BODY,
  type OpenResponse,
  type Seen,
} from '../support/http-upstream.js';
import { serve } from '../support/manager-bench.js';
import { McpServer, type McpServerOptions } from '../support/mcp-server.js';
import {
  ChildServer,
  errorOf,
  namesOf,
  openGateway,
  passUntil,
  remote,
  says,
  textOf,
  toolList,
  toolText,
} from '../support/pool-bench.js';
import { isAlive } from '../support/stdio-harness.js';

const LIST_CHANGED = 'notifications/tools/list_changed';

const ANYTHING = { tools: [], prompts: [], resources: [], contents: [], messages: [] };

/** An upstream that breaks the connection, instead of answering, as often as `breaks` says. */
async function breaking(t: TestContext, breaks: { left: number }) {
  const upstream = await HttpUpstream.start();
  t.after(() => upstream.stop());
  upstream.serveSessions('/mcp', ({ json }: Seen, response: OpenResponse) => {
    if (breaks.left-- > 0) return response.reset();
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: json.id,
      result: ANYTHING,
    });
    response.play({ headers: JSON_BODY, chunks: [body] });
  });
  return upstream;
}

test('a call whose connection broke is not sent again, and its error says plainly what is not known', async (t) => {
  const upstream = await breaking(t, { left: 1 });
  const { agent } = await openGateway(t, { one: remote(upstream.url('/mcp?key=secret-of-the-operator')) });
  const one = await agent({ token: 'secret-of-the-agent' });
  const { text, answer, status } = await one.call('pay');
  const { message, data } = errorOf({ text, answer });
  assert.equal(status, 200);
  assert.deepEqual(data, { code: 'outcome_unknown', server: 'one' });
  assert.match(
    message,
    /^Server "one" broke the connection before it answered: .+; whether tools\/call ran is not known$/,
  );
  assert.doesNotMatch(text, /secret/);
  assert.equal(upstream.count('tools/call'), 1);
});

const READS: Readonly<Record<string, string | undefined>> = {
  'tools/list': undefined,
  'prompts/list': undefined,
  'resources/list': undefined,
  'resources/read': '{"uri":"file:///a"}',
  'prompts/get': '{"name":"a"}',
  'completion/complete': '{"ref":{"type":"ref/prompt","name":"a"},"argument":{"name":"x","value":""}}',
  ping: undefined,
};
for (const [method, params] of Object.entries(READS))
  test(`${method} is sent again when the connection broke before its answer`, async (t) => {
    const breaks = { left: 0 };
    const upstream = await breaking(t, breaks);
    const { agent } = await openGateway(t, { one: remote(upstream.url()) });
    const one = await agent();
    breaks.left = 2;
    const { answer, text } = await one.request(method, params);
    assert.ok(answer.result, text);
    assert.equal(upstream.count('initialize'), 1);
  });

test('what breaks again and again is given up', async (t) => {
  const upstream = await breaking(t, { left: 1_000 });
  const { agent } = await openGateway(t, { one: remote(upstream.url()) });
  const { message, data } = errorOf(await (await agent()).request('resources/read', '{"uri":"file:///a"}'));
  assert.equal(data.code, 'outcome_unknown');
  assert.match(message, /whether resources\/read ran is not known/);
  assert.ok(upstream.count('resources/read') <= 4);
});

test('a child that dies in a call leaves its outcome unknown, runs it no second time, and is started for the next', async (t) => {
  const child = new ChildServer(t);
  const { agent } = await openGateway(t, { one: child.entry() });
  const one = await agent();
  assert.equal(textOf(await one.call('count')), '1');
  const { message, data } = errorOf(await one.call('crash'));
  assert.equal(data.code, 'outcome_unknown');
  assert.equal(message, 'Server "one" exited with code 3; whether tools/call ran is not known');
  assert.equal(child.count('crash'), 1);
  assert.equal(textOf(await one.call('count')), '1');
  assert.equal(child.count('start'), 2);
});

test('a child that dies in a listing is started again, and the listing answered', async (t) => {
  const child = new ChildServer(t);
  const { agent } = await openGateway(t, { one: child.entry() });
  const one = await agent();
  writeFileSync(child.path('shaky'), '');
  assert.deepEqual(namesOf(await one.request('tools/list')), ['count']);
  assert.equal(child.count('start'), 2);
});

test('a child that dies between two calls is started again without the agent noticing', async (t) => {
  const child = new ChildServer(t);
  const { agent, happened } = await openGateway(t, { one: child.entry() });
  const one = await agent();
  process.kill(Number(textOf(await one.call('pid'))), 'SIGKILL');
  await happened('server_disconnected');
  assert.equal(textOf(await one.call('count')), '1');
});

test('a call that could not be written to a child runs once, in the next one', async (t) => {
  const child = new ChildServer(t);
  const { agent } = await openGateway(t, { one: child.entry() }, { clock: systemClock });
  const one = await agent();
  await one.call('deafen');
  const big = 'x'.repeat(1_000_000);
  assert.equal(textOf(await one.request('tools/call', JSON.stringify({ name: 'count', big }))), '1');
  assert.equal(child.count('count'), 1);
  assert.equal(child.count('start'), 2);
});

test('a child that came back with other tools shows exactly those, and whoever listens is told', async (t) => {
  const child = new ChildServer(t);
  writeFileSync(child.path('tools'), 'a,b');
  const { agent, clock, happened, of } = await openGateway(t, { one: child.entry() });
  const [listening, silent] = [await agent(), await agent()];
  await listening.listen();
  assert.deepEqual(namesOf(await silent.request('tools/list')), ['a', 'b']);
  writeFileSync(child.path('tools'), 'c,d,e,f');
  process.kill(child.pids()[0] as number, 'SIGKILL');
  await happened('server_disconnected');
  await passUntil(clock, () => of('server_connected').length === 2);
  await listening.until(() => listening.general.some(says(LIST_CHANGED)));
  for (const one of [silent, listening])
    assert.deepEqual(namesOf(await one.request('tools/list')), ['c', 'd', 'e', 'f']);
});

test('after a child died its list is asked for anew, though nobody listened and nothing has expired', async (t) => {
  const child = new ChildServer(t);
  writeFileSync(child.path('tools'), 'a,b');
  const { agent, happened } = await openGateway(t, { one: child.entry() });
  const one = await agent();
  assert.deepEqual(namesOf(await one.request('tools/list')), ['a', 'b']);
  writeFileSync(child.path('tools'), 'c');
  process.kill(child.pids()[0] as number, 'SIGKILL');
  await happened('server_disconnected');
  assert.deepEqual(namesOf(await one.request('tools/list')), ['c']);
});

/** A server that is shut down and started again on its port, with other tools. */
async function restart(
  t: TestContext,
  server: McpServer,
  names: readonly string[],
  options: McpServerOptions = {},
) {
  const { port } = server;
  await server.close();
  const next = await McpServer.start({ ...options, on: { 'tools/list': () => toolList(...names) } }, port);
  t.after(() => next.close());
  return next;
}

for (const [what, options] of Object.entries({
  'keeps sessions': {},
  'keeps none': { sessions: false },
}) as [string, McpServerOptions][])
  test(`a server that ${what} and came back on its port with other tools shows exactly those`, async (t) => {
    const server = await McpServer.start({ ...options, on: { 'tools/list': () => toolList('a', 'b') } });
    const { agent, clock } = await openGateway(t, { one: remote(server.url) });
    const one = await agent();
    await one.listen();
    await server.until(() => server.openStreams === 1);
    assert.deepEqual(namesOf(await one.request('tools/list')), ['a', 'b']);
    const next = await restart(t, server, ['c', 'd', 'e', 'f'], options);
    await passUntil(clock, () => next.openStreams === 1);
    assert.deepEqual(namesOf(await one.request('tools/list')), ['c', 'd', 'e', 'f']);
    if (options.sessions !== false) await one.until(() => one.general.some(says(LIST_CHANGED)));
  });

test('a call to a server that was restarted between two calls runs once, in the new session', async (t) => {
  const server = await McpServer.start({ stream: false });
  const { agent } = await openGateway(t, { one: remote(server.url) });
  const one = await agent();
  const { port } = server;
  await server.close();
  const down = errorOf(await one.call('any'));
  assert.equal(down.data.code, 'server_unavailable');
  assert.match(down.message, /^Server "one" cannot be reached at http:\/\/127\.0\.0\.1:\d+: /);
  const next = await McpServer.start({ on: { 'tools/call': () => toolText('back') } }, port);
  t.after(() => next.close());
  assert.equal(textOf(await one.call('any')), 'back');
  assert.equal(next.count('tools/call'), 1);
});

test('a notification stream that ends as soon as it is open is not opened without end, and costs no request', async (t) => {
  const upstream = await HttpUpstream.start();
  t.after(() => upstream.stop());
  upstream.serveSessions();
  upstream.on('GET', '/mcp', { headers: EVENT_STREAM });
  const { agent, clock } = await openGateway(t, { one: remote(upstream.url()) });
  const one = await agent();
  await one.listen();
  for (let minute = 0; minute < 10; minute++) {
    for (let second = 0; second < 60; second++) {
      clock.advance(1_000);
      await new Promise(setImmediate);
    }
    assert.ok((await one.request('ping')).answer.result);
  }
  assert.ok(upstream.count('GET') >= 3 && upstream.count('GET') < 60, String(upstream.count('GET')));
  assert.equal(upstream.count('initialize'), 1);
  assert.deepEqual(one.general, []);
});

test('a notification stream that breaks again and again fails no call', async (t) => {
  const server = await serve(t, { on: { 'tools/call': () => toolText('fine') } });
  let drops = 0;
  const upstream = await HttpUpstream.start();
  t.after(() => upstream.stop());
  upstream.serveSessions('/mcp', ({ json }: Seen, response: OpenResponse) => {
    response.play({
      headers: JSON_BODY,
      chunks: [`{"jsonrpc":"2.0","id":${json.id},"result":${toolText('fine')}}`],
    });
  });
  upstream.on('GET', '/mcp', (_request, response) => {
    drops++;
    response.play({ headers: EVENT_STREAM, chunks: [': here\n\n'], ending: 'reset' });
  });
  const { agent, clock } = await openGateway(t, { one: remote(upstream.url()), two: remote(server.url) });
  const one = await agent();
  while (drops < 6) {
    assert.equal(textOf(await one.call('any')), 'fine');
    clock.advance(1_000);
    await new Promise(setImmediate);
  }
  assert.equal(upstream.count('initialize'), 1);
});

test('a session over the older pair of event stream and POSTs is begun anew as well', async (t) => {
  const upstream = await HttpUpstream.start();
  t.after(() => upstream.stop());
  const streams: OpenResponse[] = [];
  upstream.on('GET', '/sse', (_request, response) => {
    streams.push(response);
    const endpoint = `event: endpoint\ndata: /messages?s=${streams.length}\n\n`;
    response.play({ headers: EVENT_STREAM, chunks: [endpoint], ending: 'open' });
  });
  let lost = '';
  upstream.on('POST', '/messages', ({ url, json }, response) => {
    if (url.endsWith(lost)) return response.play({ status: 400, chunks: ['Could not find session'] });
    response.play({ status: 202 });
    if (json.id === undefined) return;
    const result = json.method === 'initialize' ? INITIALIZED : { content: [{ type: 'text', text: url }] };
    const stream = streams[Number(url.split('=')[1]) - 1];
    stream?.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: json.id, result })}\n\n`);
  });
  lost = 'none yet';
  const { agent } = await openGateway(t, { one: remote(upstream.url('/sse'), { type: 'sse' }) });
  const one = await agent();
  assert.equal(textOf(await one.call('where')), '/messages?s=1');
  lost = 's=1';
  assert.equal(textOf(await one.call('where')), '/messages?s=2');
  await (streams[0] as OpenResponse).gone();
  streams[1]?.fin();
  lost = 's=2';
  await streams[1]?.gone();
  assert.equal(textOf(await one.call('where')), '/messages?s=3');
});

const INITIALIZED = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  serverInfo: { name: 'pair', version: '1' },
};

test('children that were replaced do not stay', async (t) => {
  const child = new ChildServer(t);
  const { agent, gateway } = await openGateway(t, { one: child.entry() }, { clock: systemClock });
  const one = await agent();
  for (let at = 0; at < 3; at++) await one.call('crash');
  await gateway.close();
  assert.ok(child.pids().length >= 3);
  assert.ok(!child.pids().some(isAlive));
});
