import assert from 'node:assert/strict';
import { test } from 'node:test';
import { classifyRefusal, retryAfterMs, snippetOf } from '../../src/upstream/refusal.js';
import { answering, EVENT_STREAM, JSON_BODY, LOSS_SHAPES, type LossShape } from '../support/http-upstream.js';
import { notice, refusalOf, request, scene } from '../support/remote-link.js';

function errorBody(error: object, id: unknown = 1): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error });
}

for (const shape of Object.keys(LOSS_SHAPES) as LossShape[]) {
  test(`a session that is gone in the shape ${shape} is reported as such`, async (t) => {
    const { upstream, owner } = await scene(t);
    upstream.serveSessions();
    const link = await owner.connect(upstream.url());
    await link.send(request(1, 'tools/call'));
    upstream.expireSessions(shape);
    const error = await refusalOf(link.send(request(2, 'tools/call')));
    assert.equal(error.code, 'session_lost');
    assert.equal((await refusalOf(link.send(notice('notifications/x')))).code, 'session_lost');
    assert.equal(upstream.count('initialize'), 1);
  });
}

test('without a session id the same refusals are no loss of a session', () => {
  const body = Buffer.from(errorBody({ code: -32001, message: 'Session not found' }));
  assert.equal(classifyRefusal(404, false, body).kind, 'answer');
  assert.equal(classifyRefusal(404, false, Buffer.from('Not Found')).kind, 'unavailable');
  assert.equal(classifyRefusal(400, false, Buffer.from('Session not found')).kind, 'unavailable');
});

test('the status decides before the body does', () => {
  const lost = Buffer.from(errorBody({ code: -32001, message: 'Session not found' }));
  assert.equal(classifyRefusal(401, true, lost).kind, 'unauthorized');
  assert.equal(classifyRefusal(403, true, lost).kind, 'unauthorized');
  assert.equal(classifyRefusal(404, true, Buffer.from('')).kind, 'session_lost');
  assert.equal(classifyRefusal(500, true, lost).kind, 'answer');
  assert.equal(classifyRefusal(503, true, Buffer.from('session not found')).kind, 'unavailable');
});

test('a 400 about anything else is no loss of a session', () => {
  const kind = (text: string) => classifyRefusal(400, true, Buffer.from(text)).kind;
  assert.equal(kind(errorBody({ code: -32602, message: 'Invalid params: session is missing' })), 'answer');
  assert.equal(kind(errorBody({ code: -32601, message: 'Unknown method session/start' })), 'answer');
  assert.equal(kind(errorBody({ code: -32000, message: 'Unsupported protocol version' })), 'answer');
  assert.equal(
    kind(errorBody({ code: -32000, message: 'Bad Request: Server not initialized' })),
    'session_lost',
  );
  assert.equal(kind('Bad Request'), 'unavailable');
  assert.equal(kind(''), 'unavailable');
});

test('an error body is taken for a JSON-RPC error only if it is a whole one', () => {
  const kind = (text: string) => classifyRefusal(500, false, Buffer.from(text)).kind;
  assert.equal(kind('{"error":"boom"}'), 'unavailable');
  assert.equal(kind('{"jsonrpc":"2.0","id":1,"result":{}}'), 'unavailable');
  assert.equal(kind(`[${errorBody({ code: 1, message: 'x' })}]`), 'unavailable');
  assert.equal(kind('<html>session</html>'), 'unavailable');
});

for (const id of [1, 'server-error', null, undefined]) {
  test(`a JSON-RPC error with a status is the answer, whether its id is ${JSON.stringify(id)} or the request's`, async (t) => {
    const { upstream, owner } = await scene(t);
    const error = { code: -32022, message: 'Unsupported', data: { supported: ['2025-06-18'], big: 1 } };
    upstream.on('POST', '/mcp', { status: 400, headers: JSON_BODY, chunks: [errorBody(error, id)] });
    const link = await owner.open(upstream.url());
    await link.send(request(1, 'initialize'));
    assert.deepEqual(owner.delivered[0]?.json, { jsonrpc: '2.0', id: 1, error });
    assert.equal(owner.delivered[0]?.message.id, '1');
    assert.equal(owner.delivered[0]?.origin, '1');
  });
}

test('a JSON-RPC error for a notification is an error of ours, since there is nobody to answer', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', {
    status: 400,
    headers: JSON_BODY,
    chunks: [errorBody({ code: 1, message: 'why' })],
  });
  const link = await owner.open(upstream.url());
  const error = await refusalOf(link.send(notice('notifications/x')));
  assert.equal(error.code, 'server_unavailable');
  assert.equal(error.details.status, 400);
  assert.equal(owner.delivered.length, 0);
});

test('a refused credential comes with its status and challenge, even behind a JSON-RPC body', async (t) => {
  const { upstream, owner } = await scene(t);
  const challenge = 'Bearer resource_metadata="https://x.example/.well-known/y", error="invalid_token"';
  const body = {
    headers: { ...JSON_BODY, 'www-authenticate': challenge },
    chunks: [errorBody({ code: 1, message: 'x' })],
  };
  upstream.on('POST', '/mcp', { status: 401, ...body }, { status: 403, ...body }, { status: 401 });
  const link = await owner.open(upstream.url(), { token: 'T1' });
  for (const status of [401, 403]) {
    const error = await refusalOf(link.send(request(1, 'tools/call')));
    assert.equal(error.code, 'unauthorized');
    assert.equal(error.details.status, status);
    assert.equal(error.details.challenge, challenge);
  }
  assert.equal((await refusalOf(link.send(request(1, 'ping')))).details.challenge, undefined);
});

test('a busy server says when to come back', async (t) => {
  const { upstream, owner } = await scene(t);
  const later = new Date(owner.clock.now() + 90_000).toUTCString();
  upstream.on(
    'POST',
    '/mcp',
    { status: 429, headers: { 'retry-after': '7' }, chunks: ['slow down'] },
    { status: 503, headers: { 'retry-after': later } },
    { status: 503 },
  );
  const link = await owner.open(upstream.url());
  const waits: (number | undefined)[] = [];
  for (let i = 0; i < 3; i++) {
    const error = await refusalOf(link.send(request(1, 'tools/call')));
    assert.equal(error.code, 'server_unavailable');
    waits.push(error.details.retryAfterMs);
  }
  assert.deepEqual(waits, [7_000, 90_000, undefined]);
});

test('Retry-After is read as seconds or a date, and as nothing else', () => {
  assert.equal(retryAfterMs('0', 5), 0);
  assert.equal(retryAfterMs(' 120 ', 5), 120_000);
  assert.equal(retryAfterMs('Thu, 01 Jan 1970 00:00:10 GMT', 4_000), 6_000);
  assert.equal(retryAfterMs('Thu, 01 Jan 1970 00:00:10 GMT', 40_000), 0);
  for (const odd of ['', 'soon', '-1', '1.5', undefined]) assert.equal(retryAfterMs(odd, 0), undefined);
});

test('other refusals name the server and the status, with a clean piece of the body', async (t) => {
  const { upstream, owner } = await scene(t);
  const html =
    '<html><style>b{}</style><h1>Internal\n\tError</h1> token s3cr3t-token and hidden-value</html>';
  upstream.on(
    'POST',
    '/mcp',
    { status: 500, headers: { 'content-type': 'text/html' }, chunks: [html] },
    { status: 400 },
  );
  const link = await owner.open(upstream.url('/mcp?key=abc'), {
    token: 's3cr3t-token',
    headers: { 'x-api-key': 'hidden-value' },
  });
  const error = await refusalOf(link.send(request(1, 'tools/call')));
  assert.equal(error.code, 'server_unavailable');
  assert.equal(error.details.status, 500);
  assert.equal(error.message, 'Server "far" answered 500: Internal Error token … and …');
  assert.equal((await refusalOf(link.send(request(2, 'tools/call')))).message, 'Server "far" answered 400');
});

test('a piece of a body is short, on one line, and echoes no credential', () => {
  const long = snippetOf(Buffer.from('a\u0000\u001b[31m\r\n'.repeat(500)), []);
  assert.equal(long.length, 200);
  assert.match(long, /^[^\p{Cc}]*$/u);
  assert.equal(
    snippetOf(Buffer.from('got Authorization: Bearer abc.def-1'), []),
    'got Authorization: Bearer …',
  );
});

test('a refusal whose body never ends does not outlive its abort', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on(
    'POST',
    '/mcp',
    { status: 500, headers: EVENT_STREAM, chunks: ['x'], ending: 'open' },
    answering({}),
  );
  const link = await owner.open(upstream.url());
  const abort = new AbortController();
  const refused = refusalOf(link.send(request(1, 'tools/call'), abort.signal));
  await upstream.received('POST');
  abort.abort();
  assert.equal((await refused).code, 'cancelled');
  await link.send(request(2, 'ping'));
});

test('a tool error in a 200 is an ordinary answer, asked for once', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', {
    headers: JSON_BODY,
    chunks: [errorBody({ code: -32602, message: 'bad session id' })],
  });
  const link = await owner.open(upstream.url());
  await link.send(request(1, 'tools/call'));
  assert.equal(owner.delivered[0]?.json.error.code, -32602);
  assert.equal(upstream.seen.length, 1);
});
