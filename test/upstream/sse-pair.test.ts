import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EVENT_STREAM, JSON_BODY, type Responder } from '../support/http-upstream.js';
import { messageEvent, rawEvent } from '../support/raw-sse.js';
import { notice, refusalOf, request, result, type Scene, scene } from '../support/remote-link.js';

const changed = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
const sse = { transport: 'sse' } as const;

function named(endpoint: string): Responder {
  return { headers: EVENT_STREAM, chunks: [rawEvent({ event: 'endpoint', data: endpoint })], ending: 'open' };
}

/** An older server at /p/sse whose POSTs go to /p/messages and are answered on the stream. */
function serve({ upstream }: Scene, endpoint = '/p/messages?s=1'): void {
  upstream.on('GET', '/p/sse', named(endpoint));
  upstream.on('POST', '/p/messages', (seen, response) => {
    response.play({ status: 202, chunks: ['Accepted'] });
    if (seen.json.id === undefined) return;
    const at = upstream.seen.findIndex((other) => other.method === 'GET');
    upstream.responses[at]?.write(messageEvent(result(seen.json.id, { of: seen.json.method })));
  });
}

for (const endpoint of ['/p/messages?s=1', 'messages?s=1', './messages?s=1', 'FULL/p/messages?s=1']) {
  test(`the endpoint ${endpoint} is found from the URL of the stream`, async (t) => {
    const s = await scene(t);
    serve(s, endpoint.replace('FULL', s.upstream.origin));
    const link = await s.owner.open(s.upstream.url('/p/sse'), sse);
    assert.equal(link.kind, 'sse');
    await link.send(request(1, 'initialize'));
    const { json, origin } = await s.owner.message(1);
    assert.equal(json.result.of, 'initialize');
    assert.equal(origin, undefined);
    assert.equal(s.upstream.of('POST')[0]?.url, '/p/messages?s=1');
  });
}

test('an endpoint that is a query only belongs to the path of the stream', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('GET', '/p/sse', named('?s=1'));
  upstream.on('POST', '/p/sse', { status: 202 });
  const link = await owner.open(upstream.url('/p/sse'), sse);
  await link.send(notice('notifications/x'));
  assert.equal(upstream.of('POST')[0]?.url, '/p/sse?s=1');
});

test('an endpoint of another origin, or that is no URL, is refused and the stream let go', async (t) => {
  const s = await scene(t);
  const { upstream: other } = await scene(t);
  for (const endpoint of [other.url('/messages'), '//evil.example/x', 'http://[']) {
    s.upstream.on('GET', '/p/sse', named(endpoint));
    const error = await refusalOf(s.owner.open(s.upstream.url('/p/sse'), { ...sse, token: 'T1' }));
    assert.equal(error.code, 'server_protocol');
    assert.match(error.message, /"far"/);
    await s.upstream.responses.at(-1)?.gone();
  }
  assert.equal(other.seen.length, 0);
  assert.equal(s.owner.losses.length, 0);
});

test('the endpoint is understood with its data first and in CRLF', async (t) => {
  const { upstream, owner } = await scene(t);
  const event = rawEvent({ event: 'endpoint', data: '/p/messages', dataFirst: true }, '\r\n');
  upstream.on('GET', '/p/sse', { headers: EVENT_STREAM, chunks: [': hello\r\n\r\n', event], ending: 'open' });
  upstream.on('POST', '/p/messages', { status: 200 });
  const link = await owner.open(upstream.url('/p/sse'), sse);
  await link.send(notice('notifications/x'));
});

test('a server that names no endpoint in time is given up, with its name and the time', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('GET', '/p/sse', { headers: EVENT_STREAM, chunks: [': wait\n\n'], ending: 'open' });
  const refused = refusalOf(owner.open(upstream.url('/p/sse'), sse));
  await upstream.received('GET');
  owner.clock.advance(5_000);
  const error = await refused;
  assert.equal(error.code, 'server_timeout');
  assert.match(error.message, /"far".*5000 ms/);
  await upstream.responses[0]?.gone();
  assert.equal(owner.losses.length, 0);
});

test('a server that never answers the GET is given up as well', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('GET', '/p/sse', () => {});
  const refused = refusalOf(owner.open(upstream.url('/p/sse'), sse));
  await upstream.received('GET');
  owner.clock.advance(5_000);
  assert.equal((await refused).code, 'server_timeout');
});

test('an abort ends the opening', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('GET', '/p/sse', { headers: EVENT_STREAM, ending: 'open' });
  const abort = new AbortController();
  const refused = refusalOf(owner.open(upstream.url('/p/sse'), { ...sse, signal: abort.signal }));
  await upstream.received('GET');
  abort.abort();
  assert.equal((await refused).code, 'cancelled');
  await upstream.responses[0]?.gone();
  assert.deepEqual(owner.clock.delays, []);
});

test('a stream that ends before it names an endpoint is no link', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('GET', '/p/sse', { headers: EVENT_STREAM });
  assert.equal((await refusalOf(owner.open(upstream.url('/p/sse'), sse))).code, 'outcome_unknown');
});

test('refusals of the stream are told apart', async (t) => {
  const { upstream, owner } = await scene(t);
  const challenge = 'Bearer error="invalid_token"';
  upstream.on(
    'GET',
    '/p/sse',
    { status: 401, headers: { 'www-authenticate': challenge } },
    { status: 404 },
    { status: 200, headers: JSON_BODY, chunks: ['{}'] },
  );
  const unauthorized = await refusalOf(owner.open(upstream.url('/p/sse'), sse));
  assert.equal(unauthorized.code, 'unauthorized');
  assert.equal(unauthorized.details.challenge, challenge);
  assert.equal((await refusalOf(owner.open(upstream.url('/p/sse'), sse))).code, 'server_unavailable');
  assert.equal((await refusalOf(owner.open(upstream.url('/p/sse'), sse))).code, 'server_protocol');
});

test('the same credential and headers go with the stream and every message', async (t) => {
  const s = await scene(t);
  serve(s);
  const link = await s.owner.open(s.upstream.url('/p/sse'), {
    ...sse,
    token: 'T1',
    headers: { 'x-tenant': 'acme' },
  });
  link.established('2024-11-05');
  await link.send(request(1, 'tools/call'));
  await link.send(notice('notifications/x'));
  for (const { headers } of s.upstream.seen) {
    assert.equal(headers.authorization, 'Bearer T1');
    assert.equal(headers['x-tenant'], 'acme');
    assert.equal(headers['mcp-protocol-version'], undefined);
  }
  assert.equal(s.upstream.count('GET'), 1);
});

test('an answer in the body of the POST is taken, pleasantries are not', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('GET', '/p/sse', named('/p/messages'));
  upstream.on(
    'POST',
    '/p/messages',
    { headers: JSON_BODY, chunks: [JSON.stringify(result(1, { a: 1 }))] },
    { headers: JSON_BODY, chunks: ['{"ok":true}'] },
    { headers: JSON_BODY, chunks: [JSON.stringify(result(99))] },
    { headers: { 'content-type': 'text/plain' }, chunks: ['Accepted'] },
  );
  const link = await owner.open(upstream.url('/p/sse'), sse);
  for (const id of [1, 2, 3, 4]) await link.send(request(id, 'tools/call'));
  assert.deepEqual(
    owner.delivered.map(({ json }) => json),
    [result(1, { a: 1 })],
  );
});

test('messages that belong to nobody come from the stream at once', async (t) => {
  const s = await scene(t);
  serve(s);
  await s.owner.open(s.upstream.url('/p/sse'), sse);
  s.upstream.responses[0]?.write(
    messageEvent(changed) + rawEvent({ data: '{broken' }) + messageEvent(changed),
  );
  await s.owner.message(2);
  assert.equal(s.owner.noticed.filter((event) => event.type === 'message_dropped').length, 1);
});

for (const ending of ['end', 'reset', 'fin'] as const) {
  test(`a stream that is lost by ${ending} closes the link, once, with the outcome of its requests unknown`, async (t) => {
    const s = await scene(t);
    serve(s);
    const link = await s.owner.open(s.upstream.url('/p/sse'), sse);
    s.upstream.responses[0]?.[ending]();
    await s.owner.until(() => s.owner.losses.length > 0);
    assert.equal(s.owner.losses[0]?.code, 'outcome_unknown');
    assert.equal((await refusalOf(link.send(request(1, 'ping')))).code, 'server_unavailable');
    await link.close();
    assert.equal(s.owner.losses.length, 1);
  });
}

for (const [name, script] of [
  ['404', { status: 404, chunks: ['Could not find session'] }],
  ['400 with a text about the session', { status: 400, chunks: ['could not find session for id 12'] }],
] as const) {
  test(`a message that is answered by ${name} means that the session is lost`, async (t) => {
    const s = await scene(t);
    serve(s);
    s.upstream.on('POST', '/p/messages', script);
    const link = await s.owner.open(s.upstream.url('/p/sse'), sse);
    assert.equal((await refusalOf(link.send(request(1, 'tools/call')))).code, 'session_lost');
  });
}

test('another endpoint later on means another session, the same one again does not', async (t) => {
  const s = await scene(t);
  serve(s);
  await s.owner.open(s.upstream.url('/p/sse'), sse);
  const [stream] = s.upstream.responses;
  stream?.write(rawEvent({ event: 'endpoint', data: '/p/messages?s=1' }) + messageEvent(changed));
  await s.owner.message(1);
  assert.equal(s.owner.losses.length, 0);
  stream?.write(rawEvent({ event: 'endpoint', data: '/p/messages?s=2' }));
  await s.owner.until(() => s.owner.losses.length === 1);
  assert.equal(s.owner.losses[0]?.code, 'session_lost');
});

test('a JSON-RPC error on the POST is the answer, other refusals are ours', async (t) => {
  const s = await scene(t);
  serve(s);
  const body = '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}';
  s.upstream.on(
    'POST',
    '/p/messages',
    { status: 400, headers: JSON_BODY, chunks: [body] },
    { status: 503 },
    { status: 401 },
  );
  const link = await s.owner.open(s.upstream.url('/p/sse'), sse);
  await link.send(request(7, 'tools/call'));
  assert.deepEqual(s.owner.delivered[0]?.json.id, 7);
  assert.equal((await refusalOf(link.send(request(8, 'tools/call')))).code, 'server_unavailable');
  assert.equal((await refusalOf(link.send(request(9, 'tools/call')))).code, 'unauthorized');
});

test('closing lets the stream go and reports nothing', async (t) => {
  const s = await scene(t);
  serve(s);
  const link = await s.owner.open(s.upstream.url('/p/sse'), sse);
  await link.close();
  await s.upstream.responses[0]?.gone();
  await link.close();
  assert.equal(s.owner.losses.length, 0);
  assert.equal(s.upstream.count('DELETE'), 0);
});

test('a reset behind a call leaves its outcome unknown and it is not sent again', async (t) => {
  const s = await scene(t);
  serve(s);
  s.upstream.on('POST', '/p/messages', { ending: 'reset' });
  const link = await s.owner.open(s.upstream.url('/p/sse'), sse);
  assert.equal((await refusalOf(link.send(request(1, 'tools/call')))).code, 'outcome_unknown');
  assert.equal(s.upstream.count('tools/call'), 1);
});
