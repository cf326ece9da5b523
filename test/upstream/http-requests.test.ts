import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answering, EVENT_STREAM, JSON_BODY } from '../support/http-upstream.js';
import { notice, refusalOf, request, result, scene } from '../support/remote-link.js';

test('a session id and the revision are stated once they are known, on every verb', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.serveSessions();
  const link = await owner.connect(upstream.url(), { revision: '2025-06-18' });
  await link.send(request(1, 'tools/list'));
  await link.send(notice('notifications/x'));
  await upstream.received('GET');
  await link.close();
  const [session] = upstream.of('DELETE').map((seen) => seen.headers['mcp-session-id']);
  assert.match(String(session), /^[0-9a-f-]{36}$/);
  for (const { method, json, headers } of upstream.seen) {
    const first = json?.method === 'initialize';
    assert.equal(headers['mcp-session-id'], first ? undefined : session, method);
    assert.equal(headers['mcp-protocol-version'], first ? undefined : '2025-06-18', method);
  }
});

for (const [revision, stated] of [
  ['2024-11-05', undefined],
  ['2025-03-26', undefined],
  ['2025-11-25', '2025-11-25'],
] as const) {
  test(`the revision header is ${stated ? '' : 'not '}sent to a server of ${revision}`, async (t) => {
    const { upstream, owner } = await scene(t);
    upstream.serveSessions();
    const link = await owner.connect(upstream.url(), { revision });
    await link.send(request(1, 'ping'));
    assert.equal(upstream.of('ping')[0]?.headers['mcp-protocol-version'], stated);
  });
}

test('a server without sessions gets no session id', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', answering({}));
  const link = await owner.connect(upstream.url());
  await link.send(request(1, 'ping'));
  await link.close();
  assert.equal(upstream.seen[1]?.headers['mcp-session-id'], undefined);
  assert.equal(upstream.count('DELETE'), 0);
});

test('a session id outside visible ASCII is refused', async (t) => {
  const { upstream, owner } = await scene(t);
  const odd = { ...JSON_BODY, 'mcp-session-id': 'a b' };
  upstream.on('POST', '/mcp', { headers: odd, chunks: [JSON.stringify(result(1))] });
  const link = await owner.open(upstream.url());
  assert.equal((await refusalOf(link.send(request(1, 'initialize')))).code, 'server_protocol');
});

test('the same credential and configured headers go with every verb, over every kind of request', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.serveSessions();
  const headers = { Authorization: 'Bearer master', 'X-Tenant': 'acme' };
  const link = await owner.connect(upstream.url(), { headers, token: 'T1', revision: '2025-11-25' });
  for (const method of [
    'tools/list',
    'tools/call',
    'resources/read',
    'prompts/get',
    'completion/complete',
    'ping',
  ])
    await link.send(request(1, method));
  await link.send(notice('notifications/initialized'));
  await upstream.received('GET');
  await link.close();
  assert.deepEqual([...new Set(upstream.seen.map((seen) => seen.method))].sort(), ['DELETE', 'GET', 'POST']);
  for (const seen of upstream.seen) {
    assert.equal(seen.headers.authorization, 'Bearer T1', seen.method);
    assert.equal(seen.headers['x-tenant'], 'acme', seen.method);
  }
});

test('without a token the configured Authorization header is sent, else the user of the URL', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', answering({}));
  const configured = await owner.open(upstream.url(), { headers: { authorization: 'Bearer master' } });
  await configured.send(request(1, 'ping'));
  const inUrl = await owner.open(upstream.url().replace('//', '//me:p%40ss@'));
  await inUrl.send(request(1, 'ping'));
  assert.equal(upstream.seen[0]?.headers.authorization, 'Bearer master');
  assert.equal(upstream.seen[1]?.headers.authorization, `Basic ${Buffer.from('me:p@ss').toString('base64')}`);
});

test('a refused token is never replaced by the configured credential', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', { status: 401 });
  const link = await owner.open(upstream.url(), {
    headers: { authorization: 'Bearer master' },
    token: 'bad',
  });
  assert.equal((await refusalOf(link.send(request(1, 'tools/call')))).code, 'unauthorized');
  assert.deepEqual(
    upstream.seen.map((seen) => seen.headers.authorization),
    ['Bearer bad'],
  );
});

test('a token that no header can carry is refused without being shown', async (t) => {
  const { upstream, owner } = await scene(t);
  const error = await refusalOf(owner.open(upstream.url(), { token: 'se\r\ncret: x' }));
  assert.equal(error.code, 'unauthorized');
  assert.doesNotMatch(error.message, /cret/);
});

test('headers that are the protocol’s own cannot be configured', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', answering({}));
  const headers = {
    'Mcp-Session-Id': 'x',
    Accept: 'text/html',
    'Content-Length': '1',
    'Last-Event-ID': '9',
    'Transfer-Encoding': 'chunked',
    Connection: 'close',
  };
  const link = await owner.open(upstream.url(), { headers });
  await link.send(request(1, 'ping'));
  const seen = upstream.seen[0]?.headers ?? {};
  assert.equal(seen['mcp-session-id'], undefined);
  assert.equal(seen['last-event-id'], undefined);
  assert.equal(seen.accept, 'application/json, text/event-stream');
  assert.equal(seen['content-type'], 'application/json');
  assert.equal(seen.host, `127.0.0.1:${upstream.port}`);
});

test('redirects within the origin are followed with method and body, and remembered', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', { status: 307, headers: { location: '/mcp/' } });
  upstream.on('POST', '/mcp/', { status: 308, headers: { location: '../v2?x=1' } });
  upstream.on('POST', '/v2', answering({}));
  const link = await owner.open(upstream.url(), { token: 'T1' });
  await link.send(request(1, 'tools/call', { n: 1 }));
  await link.send(request(2, 'tools/call', { n: 2 }));
  assert.deepEqual(
    upstream.seen.map((seen) => seen.url),
    ['/mcp', '/mcp/', '/v2?x=1', '/v2?x=1'],
  );
  assert.equal(upstream.seen[2]?.json.params.n, 1);
  assert.equal(upstream.seen[2]?.headers.authorization, 'Bearer T1');
});

test('a redirect to another origin is refused, and the credential does not go there', async (t) => {
  const { upstream, owner } = await scene(t);
  const { upstream: other } = await scene(t);
  upstream.on('POST', '/mcp', { status: 307, headers: { location: other.url('/mcp?secret=1') } });
  const link = await owner.open(upstream.url(), { token: 'T1' });
  const error = await refusalOf(link.send(request(1, 'ping')));
  assert.equal(error.code, 'server_unavailable');
  assert.match(error.message, /"far" redirects to another origin/);
  assert.doesNotMatch(error.message, /secret/);
  assert.equal(other.seen.length, 0);
});

test('redirects that a POST cannot follow, without target, or in circles are refused', async (t) => {
  const { upstream, owner } = await scene(t);
  const circle = { status: 307, headers: { location: '/mcp' } };
  upstream.on(
    'POST',
    '/mcp',
    { status: 302, headers: { location: '/x' } },
    { status: 303, headers: { location: '/x' } },
    { status: 307 },
    circle,
  );
  const link = await owner.open(upstream.url());
  for (let i = 0; i < 4; i++) {
    const error = await refusalOf(link.send(request(1, 'ping')));
    assert.equal(error.code, 'server_unavailable');
    assert.match(error.message, /redirect/);
  }
  assert.equal(upstream.seen.length, 3 + 4);
});

test('a GET follows 301 and 302 as well, and takes no other verb along', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.serveSessions();
  upstream.on('GET', '/mcp', { status: 302, headers: { location: '/stream' } });
  upstream.on('GET', '/stream', { headers: EVENT_STREAM, ending: 'open' });
  const link = await owner.connect(upstream.url(), { revision: '2025-11-25' });
  await upstream.until(() => upstream.seen.some((seen) => seen.url === '/stream'));
  await link.send(request(1, 'ping'));
  assert.equal(upstream.of('ping')[0]?.url, '/mcp');
});
