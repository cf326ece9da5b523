import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { answering, EVENT_STREAM, JSON_BODY, type Script } from '../support/http-upstream.js';
import { bytesOf, messageEvent, rawEvent } from '../support/raw-sse.js';
import { notice, refusalOf, request, result, scene, socketsIdle } from '../support/remote-link.js';

const progress = {
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken: 1, progress: 1 },
};

test('a JSON answer is delivered in the bytes that came, with its request as origin', async (t) => {
  const { upstream, owner } = await scene(t);
  const body = '{ "result": {"n": 2512292042121000001, "f": 1.0}, "id":7 , "jsonrpc":"2.0"}';
  upstream.on('POST', '/mcp', { headers: JSON_BODY, chunks: [body] });
  const link = await owner.open(upstream.url());
  await link.send(request(7, 'tools/call'));
  assert.equal(owner.delivered[0]?.message.bytes.toString(), body);
  assert.equal(owner.delivered[0]?.origin, '7');
});

test('the request leaves in the bytes that were given', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', answering({}));
  const link = await owner.open(upstream.url());
  const message = request('ü', 'tools/call', { n: 1.5 });
  await link.send(message);
  assert.equal(upstream.seen[0]?.body, message.bytes.toString());
});

test('media types are compared without parameters and capitals', async (t) => {
  const { upstream, owner } = await scene(t);
  const json = {
    headers: { 'content-type': 'Application/JSON; charset=utf-8' },
    chunks: [JSON.stringify(result(1))],
  };
  const stream = {
    headers: { 'content-type': 'Text/Event-Stream;charset=UTF-8' },
    chunks: [messageEvent(result(2))],
  };
  upstream.on('POST', '/mcp', json, stream);
  const link = await owner.open(upstream.url());
  await link.send(request(1, 'ping'));
  await link.send(request(2, 'ping'));
  assert.equal(owner.delivered.length, 2);
});

test('each event is delivered while the stream is still open, those before the answer as related to the request', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', { headers: EVENT_STREAM, ending: 'open' });
  const link = await owner.open(upstream.url());
  const sent = link.send(request(5, 'tools/call'));
  await upstream.received('tools/call');
  upstream.responses[0]?.write(messageEvent(progress));
  const first = await owner.message(1);
  assert.equal(first.json.method, 'notifications/progress');
  assert.equal(first.origin, '5');
  upstream.responses[0]?.write(messageEvent({ jsonrpc: '2.0', id: 5, method: 'elicitation/create' }));
  const second = await owner.message(2);
  assert.equal(second.message.kind, 'request');
  upstream.responses[0]?.write(messageEvent(result(5)));
  await sent;
  assert.equal(owner.delivered[2]?.json.id, 5);
});

test('comments, events without data, and other events before the answer are not taken for it', async (t) => {
  const { upstream, owner } = await scene(t);
  const chunks = [
    ': ping\n\n',
    rawEvent({ id: '1', data: '' }),
    rawEvent({ event: 'ping', data: '{}' }),
    messageEvent(progress),
  ];
  upstream.on('POST', '/mcp', { headers: EVENT_STREAM, chunks: [...chunks, messageEvent(result(1))] });
  const link = await owner.open(upstream.url());
  await link.send(request(1, 'initialize'));
  assert.deepEqual(
    owner.delivered.map(({ json }) => json.method ?? json.id),
    ['notifications/progress', 1],
  );
});

test('a stream in CRLF, byte by byte, without event names, over many data lines is understood', async (t) => {
  const { upstream, owner } = await scene(t);
  const lines = JSON.stringify(result(1, { text: '😀' }), null, 2).split('\n');
  upstream.on('POST', '/mcp', { headers: EVENT_STREAM, chunks: bytesOf(rawEvent({ data: lines }, '\r\n')) });
  const link = await owner.open(upstream.url());
  await link.send(request(1, 'ping'));
  assert.equal(owner.delivered[0]?.json.result.text, '😀');
});

test('the answer ends the request though the server leaves the stream open, which is then let go', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', { headers: EVENT_STREAM, chunks: [messageEvent(result(1))], ending: 'open' });
  const link = await owner.open(upstream.url());
  await link.send(request(1, 'foo/bar'));
  owner.clock.advance(1_000);
  await upstream.responses[0]?.gone();
});

test('a notification right behind the answer is still delivered', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', { headers: EVENT_STREAM, chunks: [messageEvent(result(1))], ending: 'open' });
  const link = await owner.open(upstream.url());
  await link.send(request(1, 'tools/call'));
  upstream.responses[0]?.write(messageEvent({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }));
  const last = await owner.message(2);
  assert.equal(last.json.method, 'notifications/tools/list_changed');
});

test('a socket whose stream the server ended is used again', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', (seen, response) => {
    response.play({ headers: EVENT_STREAM, chunks: [messageEvent(result(seen.json.id))] });
  });
  const link = await owner.open(upstream.url());
  await link.send(request(1, 'ping'));
  await upstream.responses[0]?.gone();
  await socketsIdle();
  await link.send(request(2, 'ping'));
  assert.equal(upstream.seen[1]?.port, upstream.seen[0]?.port);
});

test('an answer to another request is dropped, and the right one is still awaited', async (t) => {
  const { upstream, owner } = await scene(t);
  const chunks = [messageEvent(result('1')), messageEvent(result(2)), messageEvent(result(1))];
  upstream.on('POST', '/mcp', { headers: EVENT_STREAM, chunks });
  const link = await owner.open(upstream.url());
  await link.send(request(1, 'ping'));
  assert.deepEqual(
    owner.delivered.map(({ message }) => message.id),
    ['1'],
  );
  assert.equal(owner.noticed.filter((event) => event.type === 'message_dropped').length, 2);
});

test('an array as the answer fails that request only', async (t) => {
  const { upstream, owner } = await scene(t);
  const array = JSON.stringify([result(1)]);
  upstream.on(
    'POST',
    '/mcp',
    { headers: JSON_BODY, chunks: [array] },
    { headers: EVENT_STREAM, chunks: [rawEvent({ data: array })], ending: 'open' },
    answering({}),
  );
  const link = await owner.open(upstream.url());
  assert.equal((await refusalOf(link.send(request(1, 'ping')))).code, 'server_protocol');
  assert.equal((await refusalOf(link.send(request(1, 'ping')))).code, 'server_protocol');
  await link.send(request(3, 'ping'));
  assert.equal(owner.delivered.length, 1);
});

test('bodies that are no answer fail their request with an error that names the server', async (t) => {
  const { upstream, owner } = await scene(t);
  const bodies: Script[] = [
    { headers: JSON_BODY, chunks: ['{"jsonrpc":'] },
    { headers: JSON_BODY },
    { headers: JSON_BODY, chunks: ['null'] },
    { headers: JSON_BODY, chunks: [JSON.stringify(progress)] },
    { headers: JSON_BODY, chunks: [JSON.stringify(result(0))] },
    { headers: { 'content-type': 'text/html' }, chunks: ['<html>'] },
    { chunks: [JSON.stringify(result(1))] },
    { status: 202 },
    { status: 204 },
    { headers: { ...JSON_BODY, 'content-encoding': 'zstd' }, chunks: ['x'] },
    { headers: EVENT_STREAM, chunks: [rawEvent({ data: '{broken' })] },
  ];
  upstream.on('POST', '/mcp', ...bodies);
  const link = await owner.open(upstream.url());
  for (const body of bodies) {
    const error = await refusalOf(link.send(request(1, 'tools/call')));
    assert.equal(error.code, 'server_protocol', JSON.stringify(body));
    assert.match(error.message, /"far"/);
    assert.equal(error.details.serverId, 'far');
  }
  assert.equal(owner.delivered.length, 0);
});

test('an error without id in a 200 answers the request of its POST', async (t) => {
  const { upstream, owner } = await scene(t);
  const body = '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no","data":[1]}}';
  upstream.on('POST', '/mcp', { headers: JSON_BODY, chunks: [body] });
  const link = await owner.open(upstream.url());
  await link.send(request(4, 'ping'));
  assert.deepEqual(owner.delivered[0]?.json, {
    jsonrpc: '2.0',
    id: 4,
    error: { code: -32600, message: 'no', data: [1] },
  });
});

test('what the server says to a notification or a response is never parsed', async (t) => {
  const { upstream, owner } = await scene(t);
  const replies: Script[] = [
    { status: 202 },
    { status: 204 },
    { status: 202, headers: JSON_BODY },
    { status: 200, headers: JSON_BODY, chunks: ['{broken'] },
    { status: 200, chunks: ['ok'] },
  ];
  upstream.on('POST', '/mcp', ...replies);
  const link = await owner.open(upstream.url());
  for (const _ of replies) await link.send(notice('notifications/initialized'));
  assert.equal(owner.delivered.length, 0);
});

for (const [coding, encode] of [
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
] as const) {
  test(`answers compressed with ${coding} are read, though identity was asked for`, async (t) => {
    const { upstream, owner } = await scene(t);
    const encoded = { 'content-encoding': coding };
    upstream.on(
      'POST',
      '/mcp',
      { headers: { ...JSON_BODY, ...encoded }, chunks: [encode(JSON.stringify(result(1, { a: 'ü' })))] },
      { headers: { ...EVENT_STREAM, ...encoded }, chunks: [encode(messageEvent(result(2)))] },
      {
        status: 400,
        headers: { ...JSON_BODY, ...encoded },
        chunks: [encode(JSON.stringify({ jsonrpc: '2.0', id: 3, error: { code: 1, message: 'x' } }))],
      },
    );
    const link = await owner.open(upstream.url());
    await link.send(request(1, 'ping'));
    await link.send(request(2, 'ping'));
    await link.send(request(3, 'ping'));
    assert.equal(upstream.seen[0]?.headers['accept-encoding'], 'identity');
    assert.deepEqual(
      owner.delivered.map(({ json }) => json.id),
      [1, 2, 3],
    );
    assert.equal(owner.delivered[0]?.json.result.a, 'ü');
  });
}

test('a compressed body that is damaged fails its request only', async (t) => {
  const { upstream, owner } = await scene(t);
  const gzip = { ...JSON_BODY, 'content-encoding': 'gzip' };
  upstream.on('POST', '/mcp', { headers: gzip, chunks: ['no gzip at all'] }, answering({}));
  const link = await owner.open(upstream.url());
  assert.equal((await refusalOf(link.send(request(1, 'tools/call')))).code, 'outcome_unknown');
  await link.send(request(2, 'ping'));
});

test('an answer above the limit fails its request only, compressed or not, whole or as an event', async (t) => {
  const { upstream, owner } = await scene(t);
  const large = JSON.stringify(result(1, { text: 'x'.repeat(5_000) }));
  upstream.on(
    'POST',
    '/mcp',
    { headers: JSON_BODY, chunks: [large], ending: 'open' },
    { headers: { ...JSON_BODY, 'content-encoding': 'gzip' }, chunks: [gzipSync(large)] },
    { headers: EVENT_STREAM, chunks: [rawEvent({ data: large })], ending: 'open' },
    answering({}),
  );
  const link = await owner.open(upstream.url(), { maxAnswerBytes: 2_000 });
  for (let i = 0; i < 3; i++) {
    const error = await refusalOf(link.send(request(1, 'ping')));
    assert.equal(error.code, 'too_large');
    assert.match(error.message, /"far"/);
  }
  await upstream.responses[0]?.gone();
  await upstream.responses[2]?.gone();
  await link.send(request(4, 'ping'));
});

test('an answer of several megabytes in many events arrives whole', async (t) => {
  const { upstream, owner } = await scene(t);
  const text = 'y'.repeat(3_000_000);
  const chunks = [...Array(20).keys()].map(() => messageEvent(progress));
  upstream.on('POST', '/mcp', {
    headers: EVENT_STREAM,
    chunks: [...chunks, messageEvent(result(1, { text }))],
  });
  const link = await owner.open(upstream.url(), { maxAnswerBytes: 4_000_000 });
  await link.send(request(1, 'ping'));
  assert.equal(owner.delivered.length, 21);
  assert.equal(owner.delivered[20]?.json.result.text.length, text.length);
});

test('a compressed answer of many megabytes arrives whole, however fast it comes', async (t) => {
  const { upstream, owner } = await scene(t);
  const text = randomBytes(6_000_000).toString('hex');
  const body = gzipSync(JSON.stringify(result(1, { text })), { level: 1 });
  upstream.on('POST', '/mcp', { headers: { ...JSON_BODY, 'content-encoding': 'gzip' }, chunks: [body] });
  const link = await owner.open(upstream.url(), { maxAnswerBytes: 20_000_000 });
  await link.send(request(1, 'resources/read'));
  assert.equal(owner.delivered[0]?.json.result.text === text, true);
});

test('twenty requests at once get their own answers', async (t) => {
  const { upstream, owner } = await scene(t);
  const waiting: (() => void)[] = [];
  upstream.on('POST', '/mcp', (seen, response) => {
    waiting.push(() =>
      response.play({
        headers: JSON_BODY,
        chunks: [JSON.stringify(result(seen.json.id, { mark: seen.json.params.mark }))],
      }),
    );
  });
  const link = await owner.open(upstream.url());
  const sends = [...Array(20).keys()].map((n) => link.send(request(n, 'tools/call', { mark: `m${n}` })));
  await upstream.received('tools/call', 20);
  for (const answer of waiting.reverse()) answer();
  await Promise.all(sends);
  for (const { json, origin } of owner.delivered) {
    assert.equal(json.result.mark, `m${json.id}`);
    assert.equal(origin, String(json.id));
  }
});

test('an aborted request ends at once, frees its stream and tells the server nothing', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', { headers: EVENT_STREAM, ending: 'open' });
  const link = await owner.open(upstream.url());
  const abort = new AbortController();
  const sent = link.send(request(1, 'tools/call'), abort.signal);
  await upstream.received('tools/call');
  abort.abort();
  assert.equal((await refusalOf(sent)).code, 'cancelled');
  await upstream.responses[0]?.gone();
  assert.equal(upstream.seen.length, 1);
});

test('a request aborted before the server answered at all ends too', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', () => {});
  const link = await owner.open(upstream.url());
  const abort = new AbortController();
  const sent = link.send(request(1, 'tools/call'), abort.signal);
  await upstream.received('tools/call');
  abort.abort();
  assert.equal((await refusalOf(sent)).code, 'cancelled');
  await upstream.responses[0]?.gone();
  const late = link.send(request(2, 'tools/call'), abort.signal);
  assert.equal((await refusalOf(late)).code, 'cancelled');
  assert.equal(upstream.seen.length, 1);
});

test('a notification that the server never accepts is given up', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', () => {});
  const link = await owner.open(upstream.url());
  const refused = refusalOf(link.send(notice('notifications/cancelled')));
  await upstream.received('POST');
  owner.clock.advance(5_000);
  assert.equal((await refused).code, 'server_timeout');
});
