import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EVENT_STREAM, LOSS_SHAPES } from '../support/http-upstream.js';
import { messageEvent, rawEvent } from '../support/raw-sse.js';
import { refusalOf, request, result, type Scene, scene } from '../support/remote-link.js';

const changed = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
const established = { revision: '2025-11-25', token: 'T1' };

/** The response of the stream opened as number `n`. */
async function stream({ upstream }: Scene, n = 1) {
  await upstream.received('GET', n);
  const at = upstream.seen.indexOf(upstream.of('GET')[n - 1] as never);
  const response = upstream.responses[at];
  assert.ok(response);
  return response;
}

test('one stream is opened when the handshake is done, and its messages belong to no request', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions();
  const link = await s.owner.connect(s.upstream.url());
  assert.equal(s.upstream.count('GET'), 0);
  link.established('2025-11-25');
  link.established('2025-11-25');
  (await stream(s)).write(messageEvent(changed));
  const delivered = await s.owner.message(2);
  assert.equal(delivered.origin, undefined);
  assert.equal(delivered.json.method, changed.method);
  assert.equal(s.upstream.count('GET'), 1);
  assert.equal(s.upstream.of('GET')[0]?.headers.accept, 'text/event-stream');
});

for (const status of [400, 401, 403, 404, 405, 501]) {
  test(`a server that answers the GET with ${status} is not asked again, and its POSTs go on`, async (t) => {
    const s = await scene(t);
    s.upstream.serveSessions();
    s.upstream.on('GET', '/mcp', { status });
    const link = await s.owner.connect(s.upstream.url(), established);
    await (await stream(s)).gone();
    await link.send(request(1, 'ping'));
    s.owner.clock.advance(600_000);
    await link.send(request(2, 'ping'));
    assert.equal(s.upstream.count('GET'), 1);
    assert.equal(s.owner.streamLosses, 0);
    assert.equal(s.owner.losses.length, 0);
  });
}

test('an answer to the GET that is no event stream counts as no stream', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions();
  s.upstream.on('GET', '/mcp', { headers: { 'content-type': 'text/html' }, chunks: ['<html>'] });
  const link = await s.owner.connect(s.upstream.url(), established);
  await (await stream(s)).gone();
  await link.send(request(1, 'ping'));
  assert.deepEqual(
    s.owner.clock.delays.filter((delayMs) => delayMs > 250),
    [],
  );
});

test('a stream that is lost is reported once and reopened behind its last event', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions();
  await s.owner.connect(s.upstream.url(), established);
  const first = await stream(s);
  first.write(messageEvent(changed, 'e7'));
  await s.owner.message(2);
  first.reset();
  await s.owner.until(() => s.owner.streamLosses === 1);
  await s.owner.clock.armed((delayMs) => delayMs === 1_000);
  s.owner.clock.advance(1_000);
  (await stream(s, 2)).write(messageEvent(changed, 'e8'));
  await s.owner.message(3);
  assert.equal(s.upstream.of('GET')[1]?.headers['last-event-id'], 'e7');
  assert.equal(s.upstream.of('GET')[1]?.headers.authorization, 'Bearer T1');
  assert.equal(s.owner.streamLosses, 1);
});

test('a stream that is reopened without replay is reported again: news of the gap may be missing', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions();
  await s.owner.connect(s.upstream.url(), established);
  (await stream(s)).end();
  await s.owner.until(() => s.owner.streamLosses === 1);
  await s.owner.clock.armed((delayMs) => delayMs === 1_000);
  s.owner.clock.advance(1_000);
  await s.owner.until(() => s.owner.streamLosses === 2);
  assert.equal(s.upstream.of('GET')[1]?.headers['last-event-id'], undefined);
});

for (const [name, chunks] of [
  ['closed at once', []],
  ['closed behind a priming event', [rawEvent({ id: 'p', data: '' })]],
  ['closed behind a comment', [': hello\n\n']],
] as const) {
  test(`a stream that is accepted and ${name} is reopened ever more slowly`, async (t) => {
    const s = await scene(t);
    s.upstream.serveSessions();
    s.upstream.on('GET', '/mcp', { headers: EVENT_STREAM, chunks });
    await s.owner.connect(s.upstream.url(), established);
    for (const delay of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
      await s.owner.clock.armed((delayMs) => delayMs === delay);
      s.owner.clock.advance(delay);
    }
    await s.upstream.received('GET', 8);
    assert.equal(s.upstream.count('GET'), 8);
  });
}

test('a 500, a 503 and a 409 are tried again ever more slowly', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions();
  s.upstream.on(
    'GET',
    '/mcp',
    { status: 500 },
    { status: 503 },
    { status: 409 },
    { headers: EVENT_STREAM, ending: 'open' },
  );
  await s.owner.connect(s.upstream.url(), established);
  for (const delay of [1_000, 2_000, 4_000]) {
    await s.owner.clock.armed((delayMs) => delayMs === delay);
    s.owner.clock.advance(delay);
  }
  (await stream(s, 4)).write(messageEvent(changed));
  await s.owner.message(2);
});

test('the delay starts over after real data', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions();
  const empty = { headers: EVENT_STREAM };
  s.upstream.on(
    'GET',
    '/mcp',
    empty,
    empty,
    { headers: EVENT_STREAM, chunks: [messageEvent(changed)] },
    empty,
  );
  await s.owner.connect(s.upstream.url(), established);
  for (const delay of [1_000, 2_000, 1_000, 1_000]) {
    await s.owner.clock.armed((delayMs) => delayMs === delay);
    s.owner.clock.advance(delay);
  }
  await s.upstream.received('GET', 5);
});

test('the delay starts over after ten seconds of life, silent or not', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions();
  const empty = { headers: EVENT_STREAM };
  s.upstream.on('GET', '/mcp', empty, empty, { headers: EVENT_STREAM, ending: 'open' });
  await s.owner.connect(s.upstream.url(), established);
  for (const delay of [1_000, 2_000]) {
    await s.owner.clock.armed((delayMs) => delayMs === delay);
    s.owner.clock.advance(delay);
  }
  const held = await stream(s, 3);
  // The reopened stream reports its gap, so it stands.
  await s.owner.until(() => s.owner.streamLosses === 4);
  s.owner.clock.advance(10_000);
  held.end();
  await s.owner.clock.armed((delayMs) => delayMs === 1_000);
});

test('the delay that the server asks for is honoured', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions();
  s.upstream.on('GET', '/mcp', {
    headers: EVENT_STREAM,
    chunks: [rawEvent({ retry: '25000', data: JSON.stringify(changed) })],
  });
  await s.owner.connect(s.upstream.url(), established);
  await s.owner.clock.armed((delayMs) => delayMs === 25_000);
});

test('a Retry-After behind the GET is honoured', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions();
  s.upstream.on('GET', '/mcp', { status: 429, headers: { 'retry-after': '40' } });
  await s.owner.connect(s.upstream.url(), established);
  await s.owner.clock.armed((delayMs) => delayMs === 40_000);
});

test('a silent stream is held for hours', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions();
  const link = await s.owner.connect(s.upstream.url(), established);
  const held = await stream(s);
  s.owner.clock.advance(6 * 3_600_000);
  await link.send(request(1, 'ping'));
  held.write(messageEvent(changed));
  await s.owner.until(() => s.owner.delivered.some(({ origin }) => origin === undefined));
  assert.equal(s.upstream.count('GET'), 1);
});

test('POSTs go on while the stream is lost again and again', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions();
  s.upstream.on('GET', '/mcp', { ending: 'reset' });
  const link = await s.owner.connect(s.upstream.url(), established);
  for (let n = 1; n <= 6; n++) {
    await s.owner.clock.armed((delayMs) => delayMs >= 1_000);
    await link.send(request(n, 'tools/call'));
    s.owner.clock.advance(30_000);
    await s.upstream.received('GET', n + 1);
  }
  assert.equal(s.owner.losses.length, 0);
});

test('a session that is gone when the stream is reopened closes the link', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions();
  const link = await s.owner.connect(s.upstream.url(), established);
  const first = await stream(s);
  s.upstream.expireSessions('404-text');
  first.end();
  await s.owner.clock.armed((delayMs) => delayMs === 1_000);
  s.owner.clock.advance(1_000);
  await s.owner.until(() => s.owner.losses.length === 1);
  assert.equal(s.owner.losses[0]?.code, 'session_lost');
  assert.equal((await refusalOf(link.send(request(1, 'ping')))).code, 'session_lost');
  await link.close();
  assert.equal(s.upstream.count('DELETE'), 0);
  assert.equal(s.owner.losses.length, 1);
});

test('a first GET that is answered with the loss of the session closes the link', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions();
  s.upstream.on('GET', '/mcp', LOSS_SHAPES['400-no-valid-id']);
  await s.owner.connect(s.upstream.url(), established);
  await s.owner.until(() => s.owner.losses.length === 1);
  assert.equal(s.owner.losses[0]?.code, 'session_lost');
});

test('requests under way when the session is lost fail as unknown before the link is reported closed', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions('/mcp', { headers: EVENT_STREAM, ending: 'open' });
  const link = await s.owner.connect(s.upstream.url(), established);
  const first = await stream(s);
  const order: string[] = [];
  const call = refusalOf(link.send(request(1, 'tools/call'))).then((error) => order.push(error.code));
  await s.upstream.received('tools/call');
  s.upstream.expireSessions('404-json');
  first.end();
  await s.owner.clock.armed((delayMs) => delayMs === 1_000);
  s.owner.clock.advance(1_000);
  const lost = s.owner.until(() => s.owner.losses.length === 1).then(() => order.push('closed'));
  await s.owner.clock.armed((delayMs) => delayMs === 2_000);
  assert.equal((await refusalOf(link.send(request(2, 'tools/call')))).code, 'session_lost');
  s.owner.clock.advance(2_000);
  await Promise.all([call, lost]);
  assert.deepEqual(order, ['outcome_unknown', 'closed']);
});

test('a request under way when the session is lost may still be answered', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions('/mcp', { headers: EVENT_STREAM, ending: 'open' });
  const link = await s.owner.connect(s.upstream.url(), established);
  const first = await stream(s);
  const call = link.send(request(1, 'tools/call'));
  await s.upstream.received('tools/call');
  s.upstream.expireSessions('404-json');
  first.end();
  await s.owner.clock.armed((delayMs) => delayMs === 1_000);
  s.owner.clock.advance(1_000);
  await s.owner.clock.armed((delayMs) => delayMs === 2_000);
  s.upstream.responses[s.upstream.seen.indexOf(s.upstream.of('tools/call')[0] as never)]?.write(
    messageEvent(result(1)),
  );
  await call;
  assert.equal(s.owner.delivered.at(-1)?.origin, '1');
  await s.owner.until(() => s.owner.losses.length === 1);
});

test('what is no message on the stream is dropped, and the stream goes on', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions();
  await s.owner.connect(s.upstream.url(), established);
  const held = await stream(s);
  held.write(rawEvent({ data: '{broken' }) + rawEvent({ data: '[]' }) + messageEvent(changed));
  await s.owner.message(2);
  assert.equal(s.owner.noticed.filter((event) => event.type === 'message_dropped').length, 2);
});

test('an event above the limit costs the stream, not the link, and is not replayed for ever', async (t) => {
  const s = await scene(t);
  s.upstream.serveSessions();
  const link = await s.owner.connect(s.upstream.url(), { ...established, maxAnswerBytes: 500 });
  const held = await stream(s);
  held.write(messageEvent(changed, 'e1') + messageEvent(result(1, { text: 'x'.repeat(1_000) }), 'e2'));
  await s.owner.until(() => s.owner.streamLosses === 1);
  await held.gone();
  await s.owner.clock.armed((delayMs) => delayMs === 1_000);
  s.owner.clock.advance(1_000);
  await stream(s, 2);
  assert.equal(s.upstream.of('GET')[1]?.headers['last-event-id'], undefined);
  await link.send(request(1, 'ping'));
});
