import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EVENT_STREAM } from '../support/http-upstream.js';
import { refusalOf, request, scene } from '../support/remote-link.js';

const established = { revision: '2025-11-25', token: 'T1' };

test('closing ends the session by DELETE while its streams are still open, then lets them go', async (t) => {
  const { upstream, owner } = await scene(t);
  let streamsOpen = 0;
  upstream.serveSessions('/mcp', { headers: EVENT_STREAM, ending: 'open' });
  upstream.on('DELETE', '/mcp', (_seen, response) => {
    streamsOpen = upstream.responses.filter((other) => other !== response && !other.closed).length;
    response.play({ status: 204 });
  });
  const link = await owner.connect(upstream.url(), established);
  const call = refusalOf(link.send(request(1, 'tools/call')));
  await upstream.received('GET');
  await upstream.received('tools/call');
  await link.close();
  assert.equal((await call).code, 'outcome_unknown');
  assert.equal(streamsOpen, 2);
  const [ended] = upstream.of('DELETE');
  assert.equal(ended?.headers['mcp-session-id'], upstream.of('GET')[0]?.headers['mcp-session-id']);
  assert.equal(ended?.headers.authorization, 'Bearer T1');
  assert.equal(ended?.headers['mcp-protocol-version'], '2025-11-25');
  await upstream.until(() => upstream.responses.every((response) => response.closed));
  assert.equal(owner.losses.length, 0);
  assert.equal(owner.streamLosses, 0);
});

for (const status of [200, 404, 405, 500]) {
  test(`a DELETE that is answered ${status} is good enough`, async (t) => {
    const { upstream, owner } = await scene(t);
    upstream.serveSessions();
    upstream.on('DELETE', '/mcp', { status });
    const link = await owner.connect(upstream.url(), established);
    await link.close();
    assert.equal(upstream.count('DELETE'), 1);
  });
}

test('a DELETE that hangs is waited for two seconds', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.serveSessions();
  upstream.on('DELETE', '/mcp', () => {});
  const link = await owner.connect(upstream.url(), established);
  await upstream.received('GET');
  const closed = link.close();
  await upstream.received('DELETE');
  await owner.clock.armed((delayMs) => delayMs === 2_000);
  owner.clock.advance(2_000);
  await closed;
  await upstream.until(() => upstream.responses.every((response) => response.closed));
});

test('closing twice ends the session once, and a server that is gone is no obstacle', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.serveSessions();
  const link = await owner.connect(upstream.url(), established);
  await Promise.all([link.close(), link.close()]);
  assert.equal(upstream.count('DELETE'), 1);
  const other = await owner.connect(upstream.url(), established);
  await upstream.stop();
  await other.close();
});

test('a server that ends the streams upon the DELETE is not taken for a lost one', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.serveSessions();
  upstream.on('DELETE', '/mcp', (_seen, response) => {
    for (const other of upstream.responses) if (other !== response) other.end();
    response.play({ status: 200 });
  });
  const link = await owner.connect(upstream.url(), established);
  await upstream.received('GET');
  await link.close();
  owner.clock.advance(60_000);
  assert.equal(owner.streamLosses, 0);
  assert.equal(upstream.count('GET'), 1);
});

test('a closed link delivers nothing and sends nothing', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.serveSessions();
  const link = await owner.connect(upstream.url(), established);
  await link.close();
  const before = upstream.seen.length;
  assert.equal((await refusalOf(link.send(request(1, 'ping')))).code, 'server_unavailable');
  link.established('2025-11-25');
  assert.equal(upstream.seen.length, before);
});

test('no timer and no session is left behind fifty links', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.serveSessions();
  for (let n = 0; n < 50; n++) {
    const link = await owner.connect(upstream.url(), established);
    await link.send(request(1, 'ping'));
    await link.close();
  }
  assert.equal(upstream.sessions.size, 0);
  assert.equal(upstream.count('DELETE'), 50);
  await upstream.until(() => upstream.responses.every((response) => response.closed));
  assert.deepEqual(owner.clock.delays, []);
  await owner.origins.close();
  await upstream.until(() => upstream.sockets.size === 0);
});
