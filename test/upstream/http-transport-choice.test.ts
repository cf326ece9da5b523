import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answering, EVENT_STREAM, JSON_BODY } from '../support/http-upstream.js';
import { messageEvent, rawEvent } from '../support/raw-sse.js';
import { notice, refusalOf, request, result, type Scene, scene } from '../support/remote-link.js';

const auto = { transport: 'auto' } as const;

/** An older server: no POST at its URL. */
function serveOlder({ upstream }: Scene, status: number): void {
  const endpoint = rawEvent({ event: 'endpoint', data: '/messages?s=1' });
  upstream.on('POST', '/mcp', { status });
  upstream.on('GET', '/mcp', { headers: EVENT_STREAM, chunks: [endpoint], ending: 'open' });
  upstream.on('POST', '/messages', (seen, response) => {
    response.play({ status: 202 });
    const streams = upstream.responses.filter((_, i) => upstream.seen[i]?.method === 'GET');
    if (seen.json.id !== undefined) streams.at(-1)?.write(messageEvent(result(seen.json.id)));
  });
}

for (const status of [400, 404, 405]) {
  test(`a server that answers initialize with ${status} and has an endpoint is spoken to the older way`, async (t) => {
    const s = await scene(t);
    serveOlder(s, status);
    const link = await s.owner.open(s.upstream.url(), { ...auto, token: 'T1' });
    assert.equal(link.kind, 'http');
    await link.send(request(1, 'initialize'));
    assert.equal(link.kind, 'sse');
    const { json, origin } = await s.owner.message(1);
    assert.equal(json.id, 1);
    assert.equal(origin, undefined);
    await link.send(notice('notifications/initialized'));
    link.established('2024-11-05');
    assert.deepEqual(
      s.upstream.seen.map((seen) => `${seen.method} ${seen.url} ${seen.headers.authorization}`),
      [
        'POST /mcp Bearer T1',
        'GET /mcp Bearer T1',
        'POST /messages?s=1 Bearer T1',
        'POST /messages?s=1 Bearer T1',
      ],
    );
    await link.close();
    await s.upstream.until(() => s.upstream.responses.every((response) => response.closed));
  });
}

test('what a server speaks is remembered for an hour', async (t) => {
  const s = await scene(t);
  serveOlder(s, 404);
  const first = await s.owner.open(s.upstream.url(), auto);
  await first.send(request(1, 'initialize'));
  const second = await s.owner.open(s.upstream.url(), auto);
  assert.equal(second.kind, 'sse');
  await second.send(request(2, 'initialize'));
  assert.equal(s.upstream.seen.filter((seen) => seen.method === 'POST' && seen.url === '/mcp').length, 1);
  s.owner.clock.advance(3_600_000);
  const third = await s.owner.open(s.upstream.url(), auto);
  assert.equal(third.kind, 'http');
});

test('a remembered older server that has moved on is asked anew', async (t) => {
  const s = await scene(t);
  serveOlder(s, 404);
  const first = await s.owner.open(s.upstream.url(), auto);
  await first.send(request(1, 'initialize'));
  s.upstream.on('POST', '/mcp', answering({}));
  s.upstream.on('GET', '/mcp', { status: 405 });
  const second = await s.owner.open(s.upstream.url(), auto);
  await second.send(request(2, 'initialize'));
  assert.equal(second.kind, 'http');
  assert.equal(s.owner.transports.recall('far', s.upstream.url()), 'http');
});

test('a remembered older server that is down is not asked anew', async (t) => {
  const s = await scene(t);
  s.owner.transports.remember('far', s.upstream.url(), 'sse');
  s.upstream.on('GET', '/mcp', { status: 503 });
  assert.equal((await refusalOf(s.owner.open(s.upstream.url(), auto))).details.status, 503);
  assert.equal(s.owner.transports.recall('far', s.upstream.url()), 'sse');
  assert.equal(s.upstream.count('POST'), 0);
});

for (const status of [401, 403, 429, 500, 502, 503]) {
  test(`a server that answers initialize with ${status} is not asked for the older transport`, async (t) => {
    const s = await scene(t);
    serveOlder(s, status);
    const link = await s.owner.open(s.upstream.url(), auto);
    assert.equal((await refusalOf(link.send(request(1, 'initialize')))).details.status, status);
    assert.equal(s.upstream.count('GET'), 0);
    assert.equal(link.kind, 'http');
  });
}

test('a server that cannot be reached is not asked for the older transport', async (t) => {
  const s = await scene(t);
  const url = s.upstream.url();
  const link = await s.owner.open(url, auto);
  await s.upstream.stop();
  assert.equal((await refusalOf(link.send(request(1, 'initialize')))).code, 'server_unavailable');
  assert.equal(s.owner.transports.recall('far', url), undefined);
});

test('a refusal stands where there is no endpoint either', async (t) => {
  const s = await scene(t);
  const error = { code: -32022, message: 'Unsupported', data: { supported: ['2025-06-18'] } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, error });
  s.upstream.on(
    'POST',
    '/mcp',
    { status: 400, headers: JSON_BODY, chunks: [body] },
    { status: 404, chunks: ['nothing here'] },
  );
  s.upstream.on('GET', '/mcp', { status: 405 }, { headers: EVENT_STREAM });
  const link = await s.owner.open(s.upstream.url(), auto);
  await link.send(request(1, 'initialize'));
  assert.deepEqual(s.owner.delivered[0]?.json.error, error);
  const other = await s.owner.open(s.upstream.url('/mcp?other'), auto);
  const refused = await refusalOf(other.send(request(1, 'initialize')));
  assert.equal(refused.message, 'Server "far" answered 404: nothing here');
});

test('a stream that names no endpoint in time lets the refusal stand', async (t) => {
  const s = await scene(t);
  s.upstream.on('POST', '/mcp', { status: 404 });
  s.upstream.on('GET', '/mcp', { headers: EVENT_STREAM, ending: 'open' });
  const link = await s.owner.open(s.upstream.url(), auto);
  const refused = refusalOf(link.send(request(1, 'initialize')));
  await s.upstream.received('GET');
  s.owner.clock.advance(5_000);
  assert.equal((await refused).details.status, 404);
});

test('only initialize decides: a later 404 is no reason to change the transport', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions();
  const link = await s.owner.connect(s.upstream.url(), auto);
  s.upstream.expireSessions('404-json');
  assert.equal((await refusalOf(link.send(request(1, 'ping')))).code, 'session_lost');
  assert.equal(s.upstream.count('GET'), 0);
  assert.equal(s.owner.transports.recall('far', s.upstream.url()), 'http');
});

test('a link that is closed while it tries the older transport leaves nothing open', async (t) => {
  const s = await scene(t);
  s.upstream.on('POST', '/mcp', { status: 404 });
  s.upstream.on('GET', '/mcp', { headers: EVENT_STREAM, ending: 'open' });
  const link = await s.owner.open(s.upstream.url(), auto);
  const refused = refusalOf(link.send(request(1, 'initialize')));
  await s.upstream.received('GET');
  await link.close();
  s.upstream.responses[1]?.write(rawEvent({ event: 'endpoint', data: '/messages' }));
  await refused;
  await s.upstream.until(() => s.upstream.responses.every((response) => response.closed));
  assert.equal(s.upstream.count('initialize'), 1);
});
