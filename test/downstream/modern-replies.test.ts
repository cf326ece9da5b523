import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/base/errors.js';
import type { Exchange } from '../../src/pipeline/exchange.js';
import { acknowledgement, stamped } from '../../src/protocol/subscription-messages.js';
import { type Message, readMessage } from '../../src/wire/message.js';
import { aborted, answered, modernListener, note } from '../support/modern-listener.js';

/** A handler whose exchanges are answered by the test. */
function held() {
  const answers = new Map<Exchange, { resolve(message: Message): void; reject(error: Error): void }>();
  return {
    handle: (exchange: Exchange) =>
      new Promise<Message>((resolve, reject) => {
        answers.set(exchange, { resolve, reject });
      }),
    answer: (exchange: Exchange, result?: string) =>
      answers.get(exchange)?.resolve(answered(exchange, result)),
    fail: (exchange: Exchange, error: Error) => answers.get(exchange)?.reject(error),
  };
}

test('a response that comes first is plain JSON, in the server’s bytes but for the id', async (t) => {
  const result = '{"resultType":"complete", "n":9007199254740993,"t":"\\u0061"}';
  const { post } = await modernListener(t, {
    handle: async () => readMessage(Buffer.from(`{"jsonrpc":"2.0","id":5,"result":${result}}`)),
  });
  for (const id of ['1', '"x"', '9007199254740993']) {
    const answer = await post({ id });
    assert.equal(answer.headers['content-type'], 'application/json');
    assert.equal(await answer.text(), `{"jsonrpc":"2.0","id":${id},"result":${result}}`);
  }
});

test('what belongs to a request comes before its response, on one stream that then ends', async (t) => {
  const server = held();
  const { post, arrived } = await modernListener(t, server);
  const coming = arrived();
  const posted = post({});
  const exchange = await coming;
  exchange.notify(note('notifications/progress', { progressToken: 1, progress: 1 }));
  const answer = await posted;
  assert.deepEqual(
    [answer.headers['content-type'], answer.headers['x-accel-buffering'], answer.headers['cache-control']],
    ['text/event-stream', 'no', 'no-cache, no-transform'],
  );
  server.answer(exchange);
  const messages = await answer.rest();
  assert.deepEqual(
    messages.map(({ method, result }) => method ?? result?.resultType),
    ['notifications/progress', 'complete'],
  );
  exchange.notify(note('notifications/progress', { progressToken: 1, progress: 2 }));
});

test('no event has an id, and no agent is asked anything', async (t) => {
  const server = held();
  const { post, arrived } = await modernListener(t, server);
  const coming = arrived();
  const posted = post({});
  const exchange = await coming;
  await assert.rejects(
    exchange.ask(note('roots/list'), { signal: exchange.signal, onNotification: () => {} }),
    { code: 'agent_unreachable' },
  );
  exchange.notify(note('notifications/progress'));
  const answer = await posted;
  server.answer(exchange);
  assert.doesNotMatch(await answer.text(), /^(id|retry):/m);
});

test('a log is told to a request that asked for it, from its level on', async (t) => {
  for (const [logLevel, expected] of [
    [undefined, []],
    ['warning', ['warning', 'error']],
    ['debug', ['info', 'warning', 'error']],
  ] as const) {
    const { post } = await modernListener(t, {
      handle: async (exchange) => {
        for (const level of ['info', 'warning', 'error', 'loud'])
          exchange.notify(note('notifications/message', { level, data: 1 }));
        return answered(exchange);
      },
    });
    const answer = await post({ declaration: { logLevel } });
    const messages = expected.length > 0 ? await answer.rest() : [await answer.json()];
    const levels = messages.flatMap(({ params }) => (params as { level?: string } | undefined)?.level ?? []);
    assert.deepEqual(levels, [...expected]);
  }
});

test('a server’s error has the status that the specification gives its code', async (t) => {
  for (const [code, status] of [
    [-32601, 404],
    [-32020, 400],
    [-32021, 400],
    [-32022, 400],
    [-32602, 200],
    [-32603, 200],
    [4711, 200],
  ] as const) {
    const error = `{"code": ${code},"message":"m","data":{"x":[1.0]}}`;
    const { post } = await modernListener(t, {
      handle: async ({ message }) =>
        readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${message.id},"error":${error}}`)),
    });
    const answer = await post({});
    assert.deepEqual(
      [answer.status, await answer.text()],
      [status, `{"jsonrpc":"2.0","id":1,"error":${error}}`],
    );
  }
});

test('a failure of the gateway is in-band, unless the specification gives it a status', async (t) => {
  for (const [code, status, expected] of [
    ['server_unavailable', 200, -32603],
    ['server_timeout', 200, -32603],
    ['method_unknown', 404, -32601],
    ['capability_missing', 400, -32021],
    ['invalid_params', 200, -32602],
    ['at_capacity', 503, -32603],
  ] as const) {
    const { post } = await modernListener(t, {
      handle: () => Promise.reject(new GatewayError(code, 'why', { serverId: 'one' })),
    });
    const answer = await post({});
    assert.deepEqual([answer.status, (await answer.json()).error?.code], [status, expected]);
  }
});

test('a failure behind the first event ends the stream with an error', async (t) => {
  const { post } = await modernListener(t, {
    handle: async (exchange) => {
      exchange.notify(note('notifications/progress'));
      throw new GatewayError('outcome_unknown', 'broke', { serverId: 'one' });
    },
  });
  const messages = await (await post({})).rest();
  assert.equal(messages.at(-1)?.error?.code, -32603);
});

test('an agent that closes its stream takes the request back', async (t) => {
  const { post, arrived } = await modernListener(t, held());
  const coming = arrived();
  const posted = post({});
  const exchange = await coming;
  exchange.notify(note('notifications/progress'));
  (await posted).drop();
  await aborted(exchange);
});

test('an agent that hangs up before anything came takes the request back', async (t) => {
  const { service, arrived } = await modernListener(t, held());
  const { request } = await import('node:http');
  const { modernText } = await import('../support/modern-text.js');
  const coming = arrived();
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/list',
  };
  const req = request(`${service.url}/mcp`, { method: 'POST', headers });
  req.on('error', () => {});
  req.end(modernText('tools/list', '1'));
  const exchange = await coming;
  req.destroy();
  await aborted(exchange);
});

test('a request that takes long shows a sign of life', async (t) => {
  const server = held();
  const { post, arrived, clock } = await modernListener(t, server);
  const coming = arrived();
  const posted = post({});
  const exchange = await coming;
  clock.advance(15_000);
  const answer = await posted;
  assert.equal((await answer.next())?.comment, true);
  clock.advance(15_000);
  assert.equal((await answer.next())?.comment, true);
  server.answer(exchange);
  assert.equal((await answer.rest()).length, 1);
});

const LISTEN = { method: 'subscriptions/listen', params: { notifications: { toolsListChanged: true } } };

test('a subscription is a stream at once, kept alive, that ends gently with the gateway', async (t) => {
  for (const id of ['1', '"one"', '9007199254740993']) {
    const { post, arrived, clock, service } = await modernListener(t, held());
    const coming = arrived();
    const answer = await post({ ...LISTEN, id });
    const exchange = await coming;
    assert.equal(answer.headers['content-type'], 'text/event-stream');
    exchange.notify(acknowledgement(id, { kinds: new Set(['tools']), uris: new Set() }));
    exchange.notify(stamped(note('notifications/tools/list_changed'), id));
    clock.advance(15_000);
    const drained = service.drain(clock.now() + 1_000);
    await aborted(exchange);
    const text = await answer.text();
    await drained;
    const stamp = `"_meta":{"io.modelcontextprotocol/subscriptionId":${id}}`;
    assert.match(text, /: keep-alive/);
    assert.ok(
      text.endsWith(`data: {"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete",${stamp}}}\n\n`),
    );
    assert.equal(text.split(stamp).length, 4);
  }
});

test('subscriptions count among the sessions, and leave room when they end', async (t) => {
  const { post, exchanges, service } = await modernListener(t, { ...held(), maxSessions: 1 });
  const first = await post(LISTEN);
  assert.equal(service.sessions, 1);
  assert.equal((await post(LISTEN)).status, 503);
  first.drop();
  await aborted(exchanges[0] as Exchange);
});

test('a request under way when the gateway goes is answered with an error at the deadline', async (t) => {
  const { post, arrived, service, clock } = await modernListener(t, held());
  const coming = arrived();
  const posted = post({});
  await coming;
  const drained = service.drain(clock.now());
  const answer = await posted;
  const { error } = await answer.json();
  assert.equal((error?.data as { code?: string } | undefined)?.code, 'shutting_down');
  clock.advance(1_000);
  await drained;
});
