import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answering, EVENT_STREAM, type Script } from '../support/http-upstream.js';
import { messageEvent, rawEvent } from '../support/raw-sse.js';
import { refusalOf, request, result, scene } from '../support/remote-link.js';

const progress = {
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken: 1, progress: 1 },
};
const priming = rawEvent({ id: 'e1', data: '' });

const cuts: [string, Script][] = [
  ['ends at once', { headers: EVENT_STREAM }],
  ['ends behind a notification', { headers: EVENT_STREAM, chunks: [messageEvent(progress)] }],
  ['is reset behind its headers', { headers: EVENT_STREAM, status: 200, ending: 'reset' }],
  [
    'is closed in the middle of an event',
    { headers: EVENT_STREAM, chunks: ['data: {"jsonrpc":'], ending: 'fin' },
  ],
  [
    'is reset in the middle of an event',
    { headers: EVENT_STREAM, chunks: ['data: {"jsonrpc":'], ending: 'reset' },
  ],
];

for (const [how, script] of cuts) {
  test(`a stream that ${how}, without event ids, leaves the outcome unknown at once`, async (t) => {
    const { upstream, owner } = await scene(t);
    upstream.on('POST', '/mcp', script);
    const link = await owner.open(upstream.url());
    for (const method of ['tools/call', 'tools/list']) {
      const error = await refusalOf(link.send(request(1, method)));
      assert.equal(error.code, 'outcome_unknown');
      assert.match(error.message, /"far"/);
    }
    assert.equal(upstream.seen.length, 2);
  });
}

test('a JSON answer that breaks off leaves the outcome unknown', async (t) => {
  const { upstream, owner } = await scene(t);
  const headers = { 'content-type': 'application/json', 'content-length': '500' };
  upstream.on('POST', '/mcp', { headers, chunks: ['{"jsonrpc":"2.0",'], ending: 'fin' });
  const link = await owner.open(upstream.url());
  assert.equal((await refusalOf(link.send(request(1, 'tools/call')))).code, 'outcome_unknown');
});

for (const ending of ['end', 'fin'] as const) {
  test(`an answer without its last blank line is accepted when the connection ends by ${ending}`, async (t) => {
    const { upstream, owner } = await scene(t);
    upstream.on('POST', '/mcp', {
      headers: EVENT_STREAM,
      chunks: [`data: ${JSON.stringify(result(1))}\n`],
      ending,
    });
    const link = await owner.open(upstream.url());
    await link.send(request(1, 'tools/call'));
    assert.equal(owner.delivered.length, 1);
  });
}

test('an answer without its last blank line is awaited while the connection stands', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', {
    headers: EVENT_STREAM,
    chunks: [`data: ${JSON.stringify(result(1))}\n`],
    ending: 'open',
  });
  const link = await owner.open(upstream.url());
  const abort = new AbortController();
  const sent = refusalOf(link.send(request(1, 'tools/call'), abort.signal));
  await upstream.received('POST');
  abort.abort();
  assert.equal((await sent).code, 'cancelled');
  assert.equal(owner.delivered.length, 0);
});

test('a stream that broke behind an event id is resumed there, after the delay that the server asked for', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.serveSessions('/mcp', {
    headers: EVENT_STREAM,
    chunks: [priming, rawEvent({ id: 'e2', retry: '700', data: JSON.stringify(progress) })],
    ending: 'reset',
  });
  upstream.on('GET', '/mcp', {
    headers: EVENT_STREAM,
    chunks: [messageEvent(progress, 'e3'), messageEvent(result(9), 'e4')],
  });
  const link = await owner.connect(upstream.url(), { token: 'T1' });
  const sent = link.send(request(9, 'tools/call'));
  await owner.clock.armed((delayMs) => delayMs === 700);
  assert.equal(upstream.count('GET'), 0);
  owner.clock.advance(700);
  await sent;
  const [resumption] = upstream.of('GET');
  assert.equal(resumption?.headers['last-event-id'], 'e2');
  assert.equal(resumption?.headers.authorization, 'Bearer T1');
  assert.equal(
    resumption?.headers['mcp-session-id'],
    upstream.of('tools/call')[0]?.headers['mcp-session-id'],
  );
  assert.equal(resumption?.headers.accept, 'text/event-stream');
  assert.deepEqual(
    owner.delivered.slice(1).map(({ origin, message }) => [origin, message.kind]),
    [
      ['9', 'notification'],
      ['9', 'notification'],
      ['9', 'result'],
    ],
  );
  assert.equal(upstream.count('tools/call'), 1);
});

test('a server that closes the stream on purpose is polled until the answer is there', async (t) => {
  const { upstream, owner } = await scene(t);
  let polls = 0;
  upstream.on('POST', '/mcp', {
    headers: EVENT_STREAM,
    chunks: [rawEvent({ id: '0', retry: '500', data: '' })],
  });
  upstream.on('GET', '/mcp', (_seen, response) => {
    const done = ++polls === 8;
    response.play({
      headers: EVENT_STREAM,
      chunks: [done ? messageEvent(result(1)) : rawEvent({ id: `${polls}`, data: '' })],
    });
  });
  const link = await owner.open(upstream.url());
  const sent = link.send(request(1, 'tools/call'));
  for (let poll = 1; poll <= 8; poll++) {
    await owner.clock.armed((delayMs) => delayMs === 500);
    owner.clock.advance(500);
    await upstream.received('GET', poll);
  }
  await sent;
  assert.deepEqual(
    upstream.of('GET').map((seen) => seen.headers['last-event-id']),
    ['0', '1', '2', '3', '4', '5', '6', '7'],
  );
});

test('resumptions that bring nothing are given up after five, each later than the one before', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', { headers: EVENT_STREAM, chunks: [priming] });
  upstream.on(
    'GET',
    '/mcp',
    { headers: EVENT_STREAM },
    { status: 503 },
    { status: 500 },
    { status: 409 },
    { headers: EVENT_STREAM },
  );
  const link = await owner.open(upstream.url());
  const refused = refusalOf(link.send(request(1, 'tools/call')));
  for (const delay of [1_000, 2_000, 4_000, 8_000, 16_000]) {
    await owner.clock.armed((delayMs) => delayMs === delay);
    owner.clock.advance(delay);
  }
  assert.equal((await refused).code, 'outcome_unknown');
  assert.equal(upstream.count('GET'), 5);
  assert.equal(upstream.count('POST'), 1);
});

for (const status of [400, 401, 404, 405]) {
  test(`a resumption that is answered ${status} leaves the outcome unknown at once`, async (t) => {
    const { upstream, owner } = await scene(t);
    upstream.serveSessions('/mcp', { headers: EVENT_STREAM, chunks: [priming] });
    upstream.on('GET', '/mcp', { status });
    const link = await owner.connect(upstream.url());
    const refused = refusalOf(link.send(request(1, 'tools/call')));
    await owner.clock.armed((delayMs) => delayMs === 1_000);
    owner.clock.advance(1_000);
    assert.equal((await refused).code, 'outcome_unknown');
    assert.equal(upstream.count('GET'), 1);
  });
}

test('an abort ends the wait before a resumption', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', { headers: EVENT_STREAM, chunks: [priming] });
  const link = await owner.open(upstream.url());
  const abort = new AbortController();
  const refused = refusalOf(link.send(request(1, 'tools/call'), abort.signal));
  await owner.clock.armed((delayMs) => delayMs === 1_000);
  abort.abort();
  assert.equal((await refused).code, 'cancelled');
  assert.deepEqual(owner.clock.delays, []);
  assert.equal(upstream.count('GET'), 0);
});

test('an event id that no header can carry is not resumed from', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', { headers: EVENT_STREAM, chunks: [rawEvent({ id: 'é', data: '' })] });
  const link = await owner.open(upstream.url());
  assert.equal((await refusalOf(link.send(request(1, 'tools/call')))).code, 'outcome_unknown');
});

test('a stream that broke leaves others and later requests alone', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on(
    'POST',
    '/mcp',
    { headers: EVENT_STREAM, ending: 'open' },
    { headers: EVENT_STREAM, ending: 'open' },
    answering({}),
  );
  const link = await owner.open(upstream.url());
  const [first, second] = [link.send(request(1, 'tools/call')), link.send(request(2, 'tools/call'))];
  await upstream.received('POST', 2);
  upstream.responses[0]?.reset();
  const broken = upstream.seen[0]?.json.id === 1 ? first : second;
  const whole = broken === first ? second : first;
  assert.equal((await refusalOf(broken)).code, 'outcome_unknown');
  await link.send(request(3, 'ping'));
  upstream.responses[1]?.write(messageEvent(result(upstream.seen[1]?.json.id)));
  await whole;
});
