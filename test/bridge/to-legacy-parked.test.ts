import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PATIENCE } from '../support/forwarding.js';
import type { ServerCall, Wire } from '../support/mcp-server.js';
import {
  ADA,
  ALL,
  askForm,
  broughtFor,
  FORM,
  modernOnLegacy,
  textOf,
  told,
} from '../support/modern-on-legacy.js';

const CANCELLED = 'notifications/cancelled';

/** A server that asks for as many forms as the call says, one behind the other. */
async function askOften({ ask, message }: ServerCall): Promise<string> {
  const heard: unknown[] = [];
  for (let n = 1; n <= message.params.arguments.times; n++)
    heard.push((await ask('elicitation/create', { ...FORM, message: `${n}` })).result);
  return told(heard);
}

test('a call goes through as many rounds as its server likes', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t, { call: askOften });
  const params = { arguments: { times: 30 } };
  let asked = await bench.call({ params });
  for (let n = 1; n <= 30; n++) {
    assert.equal(Object.values<Wire>(asked.result.inputRequests)[0]?.params.message, String(n));
    asked = await bench.retry(asked, [{ action: 'accept', content: { n } }], { params });
  }
  assert.equal(JSON.parse(textOf(asked)).length, 30);
  assert.equal(bench.server.count('tools/call'), 1);
});

test('prompts and resources take input as tools do, and the answer is theirs', PATIENCE, async (t) => {
  const ask = async (call: ServerCall, result: object) => {
    const { result: heard } = await call.ask('roots/list');
    return JSON.stringify({ ...result, _meta: { heard } });
  };
  const bench = await modernOnLegacy(t, {
    on: {
      'prompts/get': (call) => ask(call, { messages: [] }),
      'resources/read': (call) => ask(call, { contents: [] }),
    },
  });
  for (const [method, params] of [
    ['prompts/get', { name: 'p' }],
    ['resources/read', { uri: 'a:b' }],
  ] as const) {
    const asked = await bench.send(method, params);
    assert.equal(asked.result.resultType, 'input_required', method);
    assert.equal(asked.result.ttlMs, undefined);
    const done = await bench.send(method, { ...params, ...broughtFor(asked, [{ roots: [] }]) });
    assert.deepEqual(done.result._meta.heard, { roots: [] }, method);
    assert.equal(done.result.resultType, 'complete');
  }
});

test('a retry may spell its request in another way, but must be the same', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t);
  const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
  const bodyOf = (args: string, more = '') =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{${more}"name":"ask","arguments":${args},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":${JSON.stringify(ALL.capabilities)}}}}`;
  const post = async (body: string) =>
    (await bench.post('tools/call', { name: 'ask' }, { body })).json() as Promise<Wire>;
  const asked = await post(bodyOf(`{"a":"é","b":{"x":1.0,"y":[${deep}]}}`));
  const brought = JSON.stringify(broughtFor(asked, [ADA])).slice(1, -1);
  const other = await post(bodyOf(`{"a":"é","b":{"x":2,"y":[${deep}]}}`, `${brought},`));
  assert.equal(other.error?.code, -32602);
  const same = await post(bodyOf(`{ "b":{"y":[ ${deep}],"x":1}, "a":"\\u00e9"}`, `${brought},`));
  assert.equal(textOf(same), JSON.stringify(ADA));
});

test('inputs of another type are refused before anything runs', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t);
  for (const params of [
    { requestState: 1 },
    { requestState: null },
    { inputResponses: [] },
    { inputResponses: 'x' },
  ])
    assert.equal((await bench.call({ params })).error?.code, -32602, JSON.stringify(params));
  assert.equal(bench.server.count('tools/call'), 0);
});

test('responses that are no objects, or answer nothing, are passed over', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t);
  const asked = await bench.call();
  const [key = ''] = Object.keys(asked.result.inputRequests);
  const { requestState } = asked.result;
  const again = await bench.call({ params: { requestState, inputResponses: { [key]: 1, other: {} } } });
  assert.deepEqual(again.result.inputRequests, asked.result.inputRequests);
  assert.notEqual(again.result.requestState, requestState);
  assert.equal(textOf(await bench.retry(again, [ADA])), JSON.stringify(ADA));
});

test('an agent that declares something else by now is another one to its call', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t);
  const asked = await bench.call();
  const less = { declaration: { capabilities: { elicitation: {} } } };
  assert.equal((await bench.retry(asked, [ADA], less)).error?.code, -32602);
  assert.equal(textOf(await bench.retry(asked, [ADA])), JSON.stringify(ADA));
});

test('what an agent may be asked follows from what it declared', PATIENCE, async (t) => {
  const url = { mode: 'url', elicitationId: 'e', url: 'https://example.com', message: 'Go' };
  const sampling = { messages: [], maxTokens: 1 };
  const tools = { ...sampling, tools: [] };
  const table: [object, string, object, boolean][] = [
    [{ elicitation: {} }, 'elicitation/create', FORM, true],
    [{ elicitation: { form: {} } }, 'elicitation/create', { ...FORM, mode: undefined }, true],
    [{ elicitation: { url: {} } }, 'elicitation/create', FORM, false],
    [{ elicitation: {} }, 'elicitation/create', url, false],
    [{ elicitation: { url: {} } }, 'elicitation/create', url, true],
    [{ sampling: {} }, 'sampling/createMessage', sampling, true],
    [{ sampling: {} }, 'sampling/createMessage', tools, false],
    [{ sampling: { tools: {} } }, 'sampling/createMessage', tools, true],
    [{ elicitation: {} }, 'sampling/createMessage', sampling, false],
    [{ roots: {} }, 'roots/list', {}, true],
    [{}, 'roots/list', {}, false],
    [{ elicitation: {} }, 'vendor/ask', {}, false],
  ];
  const bench = await modernOnLegacy(t, {
    call: async ({ ask, message }) => {
      const [, method, params] = table[message.params.arguments.row] as (typeof table)[number];
      return told((await ask(method, params)).error?.code ?? 'asked');
    },
  });
  for (const [row, [capabilities, method, , may]] of table.entries()) {
    const answer = await bench.call({ declaration: { capabilities }, params: { arguments: { row } } });
    const what = `${JSON.stringify(capabilities)} ${method}`;
    assert.equal(answer.result.resultType, may ? 'input_required' : 'complete', what);
    if (!may) assert.match(textOf(answer), /^-32\d+$/, what);
  }
});

test('questions with ambiguous params are refused to the server', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t, {
    call: async ({ emit, ask }) => {
      emit('{"jsonrpc":"2.0","id":"x","method":"elicitation/create","params":{"mode":"form","mode":"url"}}');
      await ask('roots/list');
      return told('done');
    },
  });
  const asked = await bench.call();
  assert.deepEqual(
    Object.values<Wire>(asked.result.inputRequests).map(({ method }) => method),
    ['roots/list'],
  );
  assert.equal(textOf(await bench.retry(asked, [{ roots: [] }])), '"done"');
});

test('a caller cannot take the places of the others', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t, { settings: { maxParkedCalls: 40 } });
  const many = await Promise.all(Array.from({ length: 15 }, () => bench.call({ token: 'A' })));
  const waiting = many.filter(({ result }) => result.resultType === 'input_required');
  assert.equal(waiting.length, 10);
  const refused = many.find(({ result }) => result.resultType === 'complete') as Wire;
  assert.match(textOf(refused), /"code":-32\d+/);
  assert.match(await bench.gateway.dropped('tools/call'), /refused/);
  // Another declaration makes no other caller.
  const other = { token: 'A', declaration: { capabilities: { elicitation: {} } } };
  assert.match(textOf(await bench.call(other)), /"code":-32\d+/);
  assert.equal((await bench.call({ token: 'B' })).result.resultType, 'input_required');
  assert.equal(textOf(await bench.retry(waiting[0] as Wire, [ADA], { token: 'A' })), JSON.stringify(ADA));
  assert.equal((await bench.call({ token: 'A' })).result.resultType, 'input_required');
});

test('calls that ask at the same time are no more than may wait', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t, { settings: { maxParkedCalls: 3 } });
  const all = await Promise.all(Array.from({ length: 12 }, () => bench.call()));
  assert.equal(all.filter(({ result }) => result.resultType === 'input_required').length, 3);
});

test('a place is free again however its call ends', PATIENCE, async (t) => {
  let goOn: () => void = () => {};
  const bench = await modernOnLegacy(t, {
    settings: { maxParkedCalls: 1, parkMs: 60_000 },
    call: async (call) => {
      const { how } = call.message.params.arguments;
      if (how === 'answer' || how === 'expire') return await askForm(call);
      call.emit(JSON.stringify({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: FORM }));
      await new Promise<void>((resolve) => {
        goOn = resolve;
      });
      if (how === 'withdraw') call.notify(CANCELLED, { requestId: 'q' });
      return told('done');
    },
  });
  const call = async (how: string) => {
    const params = { arguments: { how } };
    const asked = await bench.call({ params });
    assert.equal(asked.result.resultType, 'input_required', how);
    return { asked, params };
  };
  const first = await call('answer');
  await bench.retry(first.asked, [ADA], first);
  await call('expire');
  bench.clock.advance(60_000);
  await bench.gateway.events.first(({ type }) => type === 'call_expired');
  for (const how of ['withdraw', 'finish']) {
    const { asked, params } = await call(how);
    goOn();
    let end = asked;
    while (end.result.resultType === 'input_required') end = await bench.retry(end, [], { params });
    assert.equal(textOf(end), '"done"');
  }
  await call('answer');
});

test('a call that has its answers takes no place while it goes on', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t, {
    settings: { maxParkedCalls: 1 },
    call: async (call) => {
      await call.ask('elicitation/create', FORM);
      call.notify('notifications/vendor');
      if (call.message.params.arguments.hang) await new Promise(() => {});
      return told('done');
    },
  });
  const params = { arguments: { hang: true } };
  const asked = await bench.call({ params });
  const again = { name: 'ask', ...params, ...broughtFor(asked, [ADA]) };
  const running = await bench.post('tools/call', again);
  assert.equal((await running.message())?.method, 'notifications/vendor');
  const next = await bench.call();
  assert.equal(next.result.resultType, 'input_required');
  assert.equal(textOf(await bench.retry(next, [ADA])), '"done"');
  running.drop();
});

test('a server that dies while a call waits fails the retry, and with it only that', PATIENCE, async (t) => {
  let cut: () => void = () => {};
  const bench = await modernOnLegacy(t, {
    call: async (call) => {
      cut = call.cut;
      return await askForm(call);
    },
  });
  const [lost, kept] = [await bench.call(), await bench.call()];
  cut();
  const failed = await bench.retry(kept, [ADA]);
  assert.equal(failed.error?.code, -32603);
  assert.match(failed.error?.message ?? '', /"one"/);
  assert.equal(textOf(await bench.retry(lost, [ADA])), JSON.stringify(ADA));
});

test('an agent that leaves while its first request is under way cancels the call', PATIENCE, async (t) => {
  let began: () => void = () => {};
  const begun = new Promise<void>((resolve) => {
    began = resolve;
  });
  const bench = await modernOnLegacy(t, {
    call: ({ notify, gone }) => {
      notify('notifications/vendor');
      began();
      return new Promise((resolve) => gone.addEventListener('abort', () => resolve('{}')));
    },
  });
  const answer = await bench.post('tools/call', { name: 'ask', arguments: {} });
  await begun;
  answer.drop();
  await bench.server.until(() => bench.server.notifications.some(({ method }) => method === CANCELLED));
});

test('an agent that leaves while its questions are gathered is asked nothing', PATIENCE, async (t) => {
  const outcomes: Wire[] = [];
  const bench = await modernOnLegacy(t, {
    call: async ({ ask, notify }) => {
      notify('notifications/vendor');
      outcomes.push(await ask('elicitation/create', FORM));
      return '{}';
    },
  });
  const answer = await bench.post('tools/call', { name: 'ask', arguments: {} });
  await bench.clock.armed((delayMs) => delayMs === 20);
  answer.drop();
  await bench.server.until(() => bench.server.notifications.some(({ method }) => method === CANCELLED));
  assert.ok(!bench.gateway.events.all.some(({ type }) => type === 'call_parked'));
});

test('what a call asks on a shared stream reaches it though a list is newer', PATIENCE, async (t) => {
  let ask: () => Promise<Wire> = () => Promise.reject(new Error('too early'));
  let list: () => void = () => {};
  const bench = await modernOnLegacy(t, {
    entry: { isolate: 'session' },
    call: async (call) => {
      call.notify('notifications/vendor');
      return told((await ask()).result);
    },
    on: {
      'prompts/list': () =>
        new Promise((resolve) => {
          list = () => resolve('{"prompts":[]}');
        }),
    },
  });
  const { server } = bench;
  const asking = new Promise<Wire>((resolve, reject) => {
    ask = async () => {
      await server.until(() => server.count('prompts/list') === 1 && server.openStreams > 0);
      server.askOnStream('elicitation/create', FORM).then(resolve, reject);
      return await asking;
    };
  });
  const call = bench.call();
  await server.until(() => server.count('tools/call') === 1);
  const listing = bench.send('prompts/list');
  const asked = await call;
  assert.equal(asked.result.resultType, 'input_required');
  list();
  await listing;
  assert.equal(textOf(await bench.retry(asked, [ADA])), JSON.stringify(ADA));
});

test('what is told of parked calls counts them', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t, { settings: { parkMs: 60_000 } });
  const asked = await bench.call();
  await bench.call();
  await bench.retry(asked, [ADA]);
  bench.clock.advance(60_000);
  const events = bench.gateway.events.all.flatMap((event) =>
    event.type === 'call_parked' || event.type === 'call_resumed' || event.type === 'call_expired'
      ? [[event.type, event.serverId, event.parked]]
      : [],
  );
  assert.deepEqual(events, [
    ['call_parked', 'one', 1],
    ['call_parked', 'one', 2],
    ['call_resumed', 'one', 1],
    ['call_expired', 'one', 0],
  ]);
});
