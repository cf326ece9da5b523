import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gate, TestAgent, toolOf, withGateway } from '../support/agent-gateway.js';
import { begin } from '../support/agent-http.js';
import type { ServerCall } from '../support/mcp-server.js';

const DONE = '{"content":[{"type":"text","text":"done"}]}';
const log = (data: unknown) => ({ level: 'info', data });
const LOG = 'notifications/message';

/** A tool server: `log` tells something first, `hold` tells something and waits, `ask` asks, `slow` waits. */
function tools() {
  const release = gate();
  const handler = async (call: ServerCall): Promise<string> => {
    switch (toolOf(call.message)) {
      case 'log':
        call.notify(LOG, log('first'));
        return DONE;
      case 'hold':
        call.notify(LOG, log('first'));
        await release.opened;
        call.notify(LOG, log('second'));
        return DONE;
      case 'ask': {
        const answer = await call.ask('elicitation/create', { message: 'Sure?', requestedSchema: {} });
        return JSON.stringify({ content: [], structuredContent: answer.result ?? { error: answer.error } });
      }
      default:
        await release.opened;
        return DONE;
    }
  };
  return { release, server: { on: { 'tools/call': handler } } };
}

test('what belongs to a request comes on its own stream before the response, event by event', async () => {
  const { release, server } = tools();
  await withGateway({ server }, async ({ url }) => {
    const agent = await TestAgent.connect(url());
    const answer = await agent.call('hold', '"q"');
    assert.equal(answer.headers['content-type'], 'text/event-stream');
    assert.equal(answer.headers['cache-control'], 'no-cache, no-transform');
    assert.equal(answer.headers['x-accel-buffering'], 'no');
    const priming = await answer.next();
    assert.ok(priming?.id);
    assert.equal(priming.data, '');
    const first = await answer.next();
    assert.equal(first?.event, 'message');
    assert.equal(first.json?.params.data, 'first');
    release.open();
    assert.equal((await answer.message())?.params.data, 'second');
    const last = await answer.message();
    assert.equal(last?.id, 'q');
    assert.equal(await answer.message(), undefined);
  })();
});

test('clients older than empty events are sent none', async () => {
  const { server } = tools();
  await withGateway({ server }, async ({ url }) => {
    const agent = await TestAgent.connect(url(), { revision: '2025-06-18' });
    for (const stream of [await agent.listen(), await agent.call('log')]) {
      const opening = await stream.next();
      assert.equal(opening?.comment, true);
      assert.equal(opening.id, undefined);
    }
  })();
});

test('a request without an answer becomes a stream, and every open stream shows signs of life', async () => {
  const { release, server } = tools();
  await withGateway({ server, config: { keepAliveMs: 15_000 } }, async ({ url, clock, server: upstream }) => {
    const agent = await TestAgent.connect(url());
    const general = await agent.listen();
    await general.next();
    const pending = agent.call('slow');
    await upstream.until(() => upstream.count('tools/call') === 1);
    clock.advance(15_000);
    const answer = await pending;
    assert.equal((await answer.next())?.data, '');
    assert.equal((await general.next())?.comment, true);
    clock.advance(15_000);
    assert.equal((await answer.next())?.comment, true);
    assert.equal((await general.next())?.comment, true);
    release.open();
    assert.equal((await answer.message())?.id, 1);
    assert.equal(await answer.next(), undefined);
  })();
});

test('a call that takes a while becomes a stream that can be resumed, for agents that know how', async () => {
  const { release, server } = tools();
  await withGateway({ server, config: { keepAliveMs: 15_000 } }, async ({ url, clock, server: upstream }) => {
    const agent = await TestAgent.connect(url());
    const older = await TestAgent.connect(url(), { revision: '2025-06-18' });
    const pending = agent.call('slow');
    const held = older.call('slow');
    await upstream.until(() => upstream.count('tools/call') === 2);
    clock.advance(1_000);
    const answer = await pending;
    const priming = await answer.next();
    assert.ok(priming?.id);
    assert.equal(priming.data, '');
    release.open();
    assert.equal((await answer.message())?.id, 1);
    assert.equal((await held).headers['content-type'], 'application/json');
  })();
});

test('a server asks the agent on the stream of the call, twice in a row, and gets its answers', async () => {
  const { server } = tools();
  await withGateway({ server }, async ({ url }) => {
    const agent = await TestAgent.connect(url(), { capabilities: { elicitation: {} } });
    const asked = new Set<unknown>();
    for (const id of ['1', '2']) {
      const answer = await agent.call('ask', id);
      const question = await answer.message();
      assert.equal(question?.method, 'elicitation/create');
      assert.equal(question.params.message, 'Sure?');
      asked.add(question.id);
      const reply = {
        jsonrpc: '2.0',
        id: question.id,
        result: { action: 'accept', content: { n: Number(id) } },
      };
      assert.equal((await agent.post(JSON.stringify(reply))).status, 202);
      assert.deepEqual((await answer.message())?.result.structuredContent, reply.result);
    }
    assert.equal(asked.size, 2);
  })();
});

test('an agent that is asked may ask with the same id meanwhile', async () => {
  const { server } = tools();
  await withGateway({ server }, async ({ url }) => {
    const agent = await TestAgent.connect(url(), { capabilities: { elicitation: {} } });
    const answer = await agent.call('ask', '1');
    const question = await answer.message();
    const list = await agent.post(`{"jsonrpc":"2.0","id":${question?.id},"method":"tools/list"}`);
    assert.deepEqual(JSON.parse(list.text).result, { tools: [] });
    await agent.post(`{"jsonrpc":"2.0","id":${question?.id},"result":{"action":"decline"}}`);
    assert.equal((await answer.message())?.result.structuredContent.action, 'decline');
  })();
});

test('an agent that takes no event stream is told and asked on its general one', async () => {
  const { server } = tools();
  await withGateway({ server }, async ({ url }) => {
    const agent = await TestAgent.connect(url(), { capabilities: { elicitation: {} } });
    agent.headers['accept'] = 'application/json';
    const general = await agent.listen();
    const answer = agent.call('ask');
    const question = await general.message();
    assert.equal(question?.method, 'elicitation/create');
    await agent.post(`{"jsonrpc":"2.0","id":${question.id},"result":{"action":"cancel"}}`);
    assert.equal((await (await answer).json()).result.structuredContent.action, 'cancel');
  })();
});

test('where an agent cannot be asked at all the server learns it at once', async () => {
  const { server } = tools();
  await withGateway({ server }, async ({ url, event }) => {
    const agent = await TestAgent.connect(url(), { capabilities: { elicitation: {} } });
    agent.headers['accept'] = 'application/json';
    const answer = await (await agent.call('ask')).json();
    assert.equal(typeof answer.result.structuredContent.error.code, 'number');
    await (await agent.call('log')).text();
    await event('message_dropped');
  })();
});

test('answers never come on the general stream', async () => {
  const { server } = tools();
  await withGateway({ server }, async ({ url, server: upstream }) => {
    const agent = await TestAgent.connect(url());
    const general = await agent.listen();
    await upstream.until(() => upstream.openStreams === 1);
    for (let n = 0; n < 20; n++) await (await agent.call('log', String(n))).rest();
    upstream.broadcast('notifications/tools/list_changed');
    assert.equal((await general.message())?.method, 'notifications/tools/list_changed');
  })();
});

test('a change that nobody listened for is told once when the agent listens', async () => {
  const { server } = tools();
  await withGateway({ server }, async ({ url, server: upstream, events, event }) => {
    const agent = await TestAgent.connect(url());
    const other = await TestAgent.connect(url());
    const general = await other.listen();
    await upstream.until(() => upstream.openStreams === 1);
    for (let n = 0; n < 5; n++) upstream.broadcast('notifications/tools/list_changed');
    upstream.broadcast('notifications/prompts/list_changed');
    while ((await general.message())?.method !== 'notifications/prompts/list_changed');
    const late = await agent.listen();
    assert.equal((await late.message())?.method, 'notifications/tools/list_changed');
    assert.equal((await late.message())?.method, 'notifications/prompts/list_changed');
    assert.equal(
      events.some(({ type }) => type === 'message_dropped'),
      false,
    );
    upstream.broadcast(LOG, log('to nobody in particular'));
    await event('message_dropped');
  })();
});

test(
  'a second general stream is refused, and the first one stays',
  withGateway({}, async ({ url, server }) => {
    const agent = await TestAgent.connect(url());
    const general = await agent.listen();
    assert.equal((await agent.listen()).status, 409);
    await server.until(() => server.openStreams === 1);
    server.broadcast('notifications/tools/list_changed');
    assert.equal((await general.message())?.method, 'notifications/tools/list_changed');
  }),
);

test(
  'a general stream that is taken up goes on where it was, and the half-open one ends',
  withGateway({}, async ({ url, server }) => {
    const agent = await TestAgent.connect(url());
    const general = await agent.listen();
    const start = (await general.next())?.id;
    await server.until(() => server.openStreams === 1);
    server.broadcast('notifications/tools/list_changed');
    server.broadcast('notifications/prompts/list_changed');
    const first = await general.next();
    await general.next();
    const again = await agent.listen(first?.id);
    assert.equal((await again.message())?.method, 'notifications/prompts/list_changed');
    assert.equal(await general.next(), undefined);
    const fromStart = await agent.listen(start);
    assert.equal((await fromStart.message())?.method, 'notifications/tools/list_changed');
    assert.equal((await fromStart.message())?.method, 'notifications/prompts/list_changed');
    server.broadcast('notifications/resources/list_changed');
    assert.equal((await fromStart.message())?.method, 'notifications/resources/list_changed');
  }),
);

test(
  'a general stream can be opened again after it was dropped',
  withGateway({}, async ({ url, server }) => {
    const agent = await TestAgent.connect(url());
    const general = await agent.listen();
    await general.next();
    await server.until(() => server.openStreams === 1);
    general.drop();
    let again = await agent.listen();
    while (again.status === 409) again = await agent.listen();
    server.broadcast('notifications/tools/list_changed');
    assert.equal((await again.message())?.method, 'notifications/tools/list_changed');
  }),
);

test('a dropped call runs on and is taken up where it was, its answer included', async () => {
  const { release, server } = tools();
  await withGateway({ server }, async ({ url, server: upstream }) => {
    const agent = await TestAgent.connect(url());
    const answer = await agent.call('hold', '7');
    await answer.next();
    const first = await answer.next();
    answer.drop();
    release.open();
    const resumed = await agent.listen(first?.id);
    assert.equal(resumed.status, 200);
    const rest = await resumed.rest();
    assert.equal(rest[0]?.params.data, 'second');
    assert.equal(rest[1]?.id, 7);
    assert.equal(rest.length, 2);
    assert.equal(
      upstream.notifications.some(({ method }) => method === 'notifications/cancelled'),
      false,
    );
  })();
});

test('what comes while an agent is away, the answer too, is there when it comes back', async () => {
  const { release, server } = tools();
  await withGateway({ server, config: { resumeMs: 60_000 } }, async ({ url, clock, events }) => {
    const agent = await TestAgent.connect(url());
    const answer = await agent.call('hold', '7');
    await answer.next();
    const first = await answer.next();
    // One timer for what is kept, another one once the gateway knows that nobody reads.
    const timers = () => clock.delays.filter((delayMs) => delayMs === 60_000).length;
    answer.drop();
    while (timers() < 2) await new Promise(setImmediate);
    release.open();
    await (await agent.call('log', '8')).rest();
    const rest = await (await agent.listen(first?.id)).rest();
    assert.equal(rest[0]?.params.data, 'second');
    assert.equal(rest[1]?.id, 7);
    assert.equal(events.filter(({ type }) => type === 'message_dropped').length, 0);
  })();
});

test('a stream that is complete is repeated and ends; behind its end there is nothing to come back for', async () => {
  const { server } = tools();
  await withGateway({ server, config: { resumeMs: 60_000 } }, async ({ url, clock }) => {
    const agent = await TestAgent.connect(url());
    const answer = await agent.call('log');
    const ids: string[] = [];
    for (let event = await answer.next(); event; event = await answer.next()) ids.push(event.id ?? '');
    const repeated = await agent.listen(ids[1]);
    assert.deepEqual(
      (await repeated.rest()).map(({ id }) => id),
      [1],
    );
    assert.equal((await agent.listen(ids[2])).status, 204);
    clock.advance(60_001);
    assert.equal((await agent.listen(ids[1])).status, 204);
  })();
});

test('a dropped call that nobody comes back for is withdrawn from the server, not before its time', async () => {
  for (const tool of ['hold', 'slow']) {
    const { server } = tools();
    await withGateway(
      { server, config: { resumeMs: 60_000 } },
      async ({ url, clock, server: upstream, gateway }) => {
        const agent = await TestAgent.connect(url());
        if (tool === 'hold') {
          const answer = await agent.call(tool);
          await answer.message();
          answer.drop();
        } else {
          const drop = await begin(agent.url, {
            headers: { 'content-type': 'application/json', ...agent.headers },
            body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`,
          });
          await upstream.until(() => upstream.count('tools/call') === 1);
          drop();
        }
        // The gateway has noticed: beside the log of what was sent, the call itself has a time limit now.
        const limits = tool === 'hold' ? 2 : 1;
        await clock.armed(() => clock.delays.filter((delayMs) => delayMs === 60_000).length === limits);
        clock.advance(59_999);
        await (await agent.call('log', '2')).rest();
        const cancelled = () =>
          upstream.notifications.filter(({ method }) => method === 'notifications/cancelled');
        assert.equal(cancelled().length, 0);
        clock.advance(1);
        await upstream.until(() => cancelled().length === 1);
        assert.equal(gateway.sessions, 1);
      },
    )();
  }
});

test('an event id of another session repeats nothing of it', async () => {
  const { server } = tools();
  await withGateway({ server }, async ({ url }) => {
    const mine = await TestAgent.connect(url());
    const theirs = await TestAgent.connect(url());
    await (await mine.call('log')).rest();
    const secret = await theirs.call('log');
    const id = (await secret.next())?.id;
    await secret.rest();
    assert.ok(id);
    for (const foreign of [id, 'garbage', '-', '../../x']) {
      const stream = await mine.listen(foreign);
      assert.equal(stream.status, 200);
      assert.equal((await stream.next())?.data, '');
      await mine.send({ method: 'GET', headers: { accept: 'text/event-stream', 'last-event-id': 'next' } });
      assert.equal(await stream.next(), undefined);
    }
  })();
});

test('an agent that never reads its general stream loses it, and the gateway keeps little', async () => {
  await withGateway({}, async ({ url, server, event }) => {
    const agent = await TestAgent.connect(url());
    const general = await agent.listen();
    await general.next();
    general.pause();
    await server.until(() => server.openStreams === 1);
    const dropped = event('message_dropped');
    const payload = log('x'.repeat(1_000_000));
    let over = false;
    void dropped.then(() => {
      over = true;
    });
    for (let sent = 0; !over; sent++) {
      assert.ok(sent < 200, 'the stream was never closed');
      server.broadcast(LOG, payload);
      await (await agent.send({ method: 'OPTIONS' })).text();
    }
    assert.equal((await agent.listen()).status, 200);
  })();
});
