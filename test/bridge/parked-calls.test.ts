import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { PATIENCE } from '../support/forwarding.js';
import { Refusal, type ServerHandler, type Wire } from '../support/mcp-server.js';
import {
  ADA,
  ALL,
  askForm,
  FORM,
  type ModernOnLegacy,
  modernOnLegacy,
  textOf,
} from '../support/modern-on-legacy.js';
import { modernPost, responseOf } from '../support/modern-post.js';

async function benchOf(t: TestContext, ask: ServerHandler, settings: object = {}) {
  const bench = await modernOnLegacy(t, { call: ask, settings });
  const call: ModernOnLegacy['call'] = (more) => bench.call(more);
  const retry: ModernOnLegacy['retry'] = (asked, answers, more) => bench.retry(asked, answers, more);
  return { bench: bench.gateway, server: bench.server, clock: bench.clock, call, retry };
}

test(
  'a server’s question ends the request, and the retry goes on with the same call',
  PATIENCE,
  async (t) => {
    const { call, retry, server } = await benchOf(t, askForm);
    const asked = await call();
    assert.equal(asked.result.resultType, 'input_required');
    assert.deepEqual(Object.values(asked.result.inputRequests), [
      { method: 'elicitation/create', params: FORM },
    ]);
    const done = await retry(asked, [ADA]);
    assert.deepEqual([done.id, textOf(done)], ['again', JSON.stringify(ADA)]);
    assert.equal(done.result.resultType, 'complete');
    assert.equal(server.count('tools/call'), 1);
  },
);

test('questions that come together are one round, those that follow are another', PATIENCE, async (t) => {
  const { call, retry } = await benchOf(t, async ({ ask }) => {
    const first = await Promise.all([
      ask('elicitation/create', FORM),
      ask('roots/list'),
      ask('sampling/createMessage', { messages: [], maxTokens: 1 }),
    ]);
    const last = await ask('elicitation/create', { ...FORM, message: 'Sure?' });
    const told = [...first, last].map(({ result }) => result);
    return JSON.stringify({ content: [{ type: 'text', text: JSON.stringify(told) }] });
  });
  const first = await call();
  assert.deepEqual(
    Object.values<{ method: string }>(first.result.inputRequests).map(({ method }) => method),
    ['elicitation/create', 'roots/list', 'sampling/createMessage'],
  );
  const answers = [ADA, { roots: [] }, { role: 'assistant', content: [], model: 'm' }];
  const second = await retry(first, answers);
  assert.equal(Object.values<Wire>(second.result.inputRequests)[0]?.params.message, 'Sure?');
  const done = await retry(second, [{ action: 'decline' }]);
  assert.deepEqual(JSON.parse(textOf(done)), [...answers, { action: 'decline' }]);
});

test('a retry that answers a part is asked the rest again', PATIENCE, async (t) => {
  const { call, retry } = await benchOf(t, async ({ ask }) => {
    const both = await Promise.all([ask('elicitation/create', FORM), ask('roots/list')]);
    return JSON.stringify({
      content: [{ type: 'text', text: JSON.stringify(both.map((one) => one.result)) }],
    });
  });
  const first = await call();
  const second = await retry(first, [ADA]);
  assert.deepEqual(
    Object.values<{ method: string }>(second.result.inputRequests).map(({ method }) => method),
    ['roots/list'],
  );
  const third = await retry(second, []);
  assert.equal(third.result.resultType, 'input_required');
  const done = await retry(third, [{ roots: [] }]);
  assert.deepEqual(JSON.parse(textOf(done)), [ADA, { roots: [] }]);
});

test('what an agent brings reaches the server in its own bytes', PATIENCE, async (t) => {
  const { call, bench } = await benchOf(t, askForm);
  const asked = await call();
  const [key = ''] = Object.keys(asked.result.inputRequests);
  const odd = '{"action":"accept","content":{"n":9007199254740993, "t":"\\u0061"}}';
  const state = JSON.stringify(asked.result.requestState);
  const meta =
    '{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":' +
    `${JSON.stringify(ALL.capabilities)},"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}`;
  const body = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":${meta},"arguments":{},"inputResponses":{"${key}":${odd},"extra":{}},"requestState":${state},"name":"ask"}}`;
  const answer = await modernPost(bench.url(), 'tools/call', { name: 'ask' }, { body });
  assert.equal(textOf(await responseOf(answer)), JSON.stringify(JSON.parse(odd)));
});

test('a state is good for one retry, also when two come at once', PATIENCE, async (t) => {
  const { call, retry, server } = await benchOf(t, askForm);
  const asked = await call();
  const both = await Promise.all([retry(asked, [ADA]), retry(asked, [ADA])]);
  assert.deepEqual(both.map(({ error }) => error?.code).sort(), [-32602, undefined]);
  assert.equal((await retry(asked, [ADA])).error?.code, -32602);
  assert.equal(server.count('tools/call'), 1);
});

test('nobody else can use a state, and trying costs its owner nothing', PATIENCE, async (t) => {
  const { call, retry } = await benchOf(t, askForm);
  const asked = await call({ token: 'A' });
  for (const more of [
    { token: 'B' },
    {},
    { token: 'A', params: { name: 'other' } },
    { token: 'A', params: { arguments: { x: 1 } } },
  ]) {
    const stolen = await retry(asked, [ADA], more);
    assert.match(stolen.error?.message ?? '', /requestState/);
    assert.equal(stolen.error?.code, -32602);
  }
  assert.equal(textOf(await retry(asked, [ADA], { token: 'A' })), JSON.stringify(ADA));
});

test('a state that was changed, cut or invented is refused', PATIENCE, async (t) => {
  const { call, retry } = await benchOf(t, askForm);
  const asked = await call();
  const state = asked.result.requestState as string;
  const flipped = state.slice(0, -2) + (state.endsWith('A') ? 'BB' : 'AA');
  for (const requestState of [
    '',
    'x',
    flipped,
    state.slice(1),
    `${state}=`,
    `${state} `,
    'A'.repeat(100_000),
  ])
    assert.equal(
      (await retry(asked, [ADA], { params: { requestState } })).error?.code,
      -32602,
      requestState.slice(0, 20),
    );
  assert.equal(textOf(await retry(asked, [ADA])), JSON.stringify(ADA));
});

test(
  'a call whose agent never comes back is cancelled at its server, and its state is worth nothing',
  PATIENCE,
  async (t) => {
    const { call, retry, server, bench, clock } = await benchOf(t, askForm, { parkMs: 60_000 });
    const asked = await call();
    clock.advance(60_000);
    await bench.events.first(({ type }) => type === 'call_expired');
    await server.until(() => server.notifications.some(({ method }) => method === 'notifications/cancelled'));
    assert.equal((await retry(asked, [ADA])).error?.code, -32602);
  },
);

test('a server that withdraws its question while the call waits goes on with it', PATIENCE, async (t) => {
  let withdraw: () => void = () => {};
  const { call, retry } = await benchOf(t, async ({ emit, notify }) => {
    emit(JSON.stringify({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: FORM }));
    await new Promise<void>((resolve) => {
      withdraw = resolve;
    });
    notify('notifications/cancelled', { requestId: 'q' });
    return '{"content":[{"type":"text","text":"never mind"}]}';
  });
  let asked = await call();
  withdraw();
  while (asked.result.resultType === 'input_required') asked = await retry(asked, []);
  assert.equal(textOf(asked), 'never mind');
});

test('an answer that comes while nobody waits is kept for the retry', PATIENCE, async (t) => {
  let answered: () => void = () => {};
  const { call, retry } = await benchOf(t, async ({ emit }) => {
    emit(JSON.stringify({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: FORM }));
    await new Promise<void>((resolve) => {
      answered = resolve;
    });
    return '{"content":[{"type":"text","text":"gave up waiting"}]}';
  });
  const asked = await call();
  answered();
  assert.equal(textOf(await retry(asked, [ADA])), 'gave up waiting');
});

test('a server is told at once that an agent does not offer what it asks for', PATIENCE, async (t) => {
  const { call } = await benchOf(t, askForm);
  for (const capabilities of [{}, { sampling: {} }, { elicitation: { url: {} } }]) {
    const done = await call({ declaration: { capabilities } });
    assert.equal(done.result.resultType, 'complete');
    assert.match(textOf(done), /"code":-32\d+/);
  }
});

test('a question in a request that may take no input is refused to the server', PATIENCE, async (t) => {
  const { bench, server } = await benchOf(t, askForm);
  server.on['prompts/list'] = async ({ ask }) => {
    const answer = await ask('elicitation/create', FORM);
    return JSON.stringify({ prompts: [], _meta: { refused: answer.error !== undefined } });
  };
  const answer = await modernPost(bench.url(), 'prompts/list', {}, { declaration: ALL });
  assert.equal((await responseOf(answer)).result._meta.refused, true);
});

test('no more calls wait than may, and the server of one too many is told so', PATIENCE, async (t) => {
  const { call, retry } = await benchOf(t, askForm, { maxParkedCalls: 2 });
  const waiting = [await call(), await call()];
  const refused = await call();
  assert.match(textOf(refused), /"code":-32\d+/);
  assert.equal(textOf(await retry(waiting[0] as Wire, [ADA])), JSON.stringify(ADA));
  assert.equal((await call()).result.resultType, 'input_required');
});

test('a URL question loses its id, and is for agents that open URLs', PATIENCE, async (t) => {
  const { call, retry } = await benchOf(t, async ({ ask }) => {
    const asked = { mode: 'url', elicitationId: 'e1', url: 'https://example.com', message: 'Go' };
    const answer = await ask('elicitation/create', asked);
    return JSON.stringify({
      content: [{ type: 'text', text: JSON.stringify(answer.result ?? answer.error) }],
    });
  });
  const asked = await call();
  assert.deepEqual(Object.values<Wire>(asked.result.inputRequests)[0]?.params, {
    ...{ mode: 'url', url: 'https://example.com', message: 'Go' },
  });
  assert.equal(textOf(await retry(asked, [{ action: 'accept' }])), '{"action":"accept"}');
});

test(
  'an error that wants a URL opened first asks for it, and the retry runs the request anew',
  PATIENCE,
  async (t) => {
    let opened = false;
    const { call, retry, server } = await benchOf(t, () => {
      if (opened) return '{"content":[{"type":"text","text":"welcome"}]}';
      const elicitations = [
        { mode: 'url', elicitationId: 'e', url: 'https://example.com', message: 'Sign in' },
      ];
      throw new Refusal(-32042, 'sign in first', { elicitations });
    });
    const asked = await call();
    assert.equal(asked.result.resultType, 'input_required');
    opened = true;
    assert.equal(textOf(await retry(asked, [{ action: 'accept' }])), 'welcome');
    assert.equal(server.count('tools/call'), 2);
    opened = false;
    const { error } = await call({ declaration: { capabilities: { elicitation: {} } } });
    const data = error?.data as { requiredCapabilities?: object } | undefined;
    assert.deepEqual([error?.code, data?.requiredCapabilities], [-32021, { elicitation: { url: {} } }]);
  },
);

test(
  'progress goes to the request that waits, under its own token, and to none while the call is parked',
  PATIENCE,
  async (t) => {
    const { bench } = await benchOf(t, async ({ message, notify, ask }) => {
      const progressToken = message.params._meta.progressToken;
      notify('notifications/progress', { progressToken, progress: 1 });
      await ask('elicitation/create', FORM);
      notify('notifications/progress', { progressToken, progress: 2 });
      return '{"content":[]}';
    });
    const send = async (token: string | number, params: object) => {
      const declaration = { ...ALL, progressToken: token };
      const all = { name: 'ask', arguments: {}, ...params };
      const answer = await modernPost(bench.url(), 'tools/call', all, { declaration });
      return answer.rest();
    };
    const first = await send('a', {});
    assert.deepEqual(first[0]?.params, { progressToken: 'a', progress: 1 });
    const asked = first.at(-1) as Wire;
    const [key = ''] = Object.keys(asked.result.inputRequests);
    const second = await send(7, {
      inputResponses: { [key]: ADA },
      requestState: asked.result.requestState,
    });
    assert.deepEqual(second[0]?.params, { progressToken: 7, progress: 2 });
  },
);

test('two callers that ask alike each get their own call', PATIENCE, async (t) => {
  const { call, retry } = await benchOf(t, askForm);
  const tokens = ['A', 'B', 'C'];
  const asked = await Promise.all(tokens.map((token) => call({ token })));
  const done = await Promise.all(
    tokens.map((token, i) =>
      retry(asked[i] as Wire, [{ action: 'accept', content: { name: token } }], { token }),
    ),
  );
  for (const [i, token] of tokens.entries())
    assert.equal(textOf(done[i] as Wire), `{"action":"accept","content":{"name":"${token}"}}`);
});

test('an agent that closes the stream of its retry cancels the call', PATIENCE, async (t) => {
  const { call, server, bench } = await benchOf(t, async (given) => {
    await given.ask('elicitation/create', FORM);
    given.notify('notifications/message', { level: 'error', data: 'on' });
    await new Promise<void>((resolve) => given.gone.addEventListener('abort', () => resolve()));
    return '{}';
  });
  const asked = await call();
  const [key = ''] = Object.keys(asked.result.inputRequests);
  const again = { inputResponses: { [key]: ADA }, requestState: asked.result.requestState };
  const answer = await modernPost(
    bench.url(),
    'tools/call',
    { name: 'ask', arguments: {}, ...again },
    { declaration: { ...ALL, logLevel: 'debug' } },
  );
  await answer.message();
  answer.drop();
  await server.until(() => server.notifications.some(({ method }) => method === 'notifications/cancelled'));
});

test('the end of the gateway ends the calls that wait', PATIENCE, async (t) => {
  const { call, server, bench } = await benchOf(t, askForm);
  await call();
  await bench.gateway.close();
  await server.until(() => server.deleted > 0);
});
