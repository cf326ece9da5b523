import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { callText, gate, type TestAgent } from '../support/agent-gateway.js';
import type { Incoming } from '../support/agent-http.js';
import {
  type Forwarding,
  forwarding,
  nextText,
  PATIENCE,
  responseOf,
  restOf,
} from '../support/forwarding.js';
import { McpServer, Refusal, type ServerCall, type Wire } from '../support/mcp-server.js';

const ASKABLE = { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true }, tasks: {} };
const MARKER = 'notifications/prompts/list_changed';

interface Bench {
  readonly server: McpServer;
  readonly bench: Forwarding;
}

async function start(t: TestContext, on: McpServer['on'] = {}, isolate = 'auto'): Promise<Bench> {
  const server = await McpServer.start({ on });
  const servers = { one: { url: server.url, isolate } };
  return { server, bench: await forwarding(t, { servers, behind: [server] }) };
}

const respond = (agent: TestAgent, question: Wire | undefined, result: object) =>
  agent.post(JSON.stringify({ jsonrpc: '2.0', id: question?.id, result }));

const send = (agent: TestAgent, method: string, params: object = {}) =>
  responseOf(agent.open(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })));

async function heardBefore(stream: Incoming, marker: string): Promise<Wire[]> {
  const heard: Wire[] = [];
  for (let message = await stream.message(); message; message = await stream.message()) {
    if (message.method === marker) return heard;
    heard.push(message);
  }
  throw new Error('The stream ended');
}

/** Asks its agent twice and answers with what it heard. */
const interview = async ({ message, ask, notify }: ServerCall) => {
  const { name } = message.params;
  notify('notifications/message', { level: 'info', data: name });
  notify('notifications/vendor/step', { name });
  const first = await ask('elicitation/create', { message: `${name} 1`, requestedSchema: {} });
  const second = await ask('sampling/createMessage', { messages: [], maxTokens: 1, mark: `${name} 2` });
  return JSON.stringify({ content: [], heard: [first.result, second.result] });
};

/** Answers both questions of an interview; resolves to what came on the stream of the call. */
async function interviewed(agent: TestAgent, name: string): Promise<Wire[]> {
  const stream = await agent.open(callText(name));
  const heard: Wire[] = [];
  for (let message = await stream.message(); message; message = await stream.message()) {
    heard.push(message);
    if (message.id !== undefined && message.method) await respond(agent, message, { by: name });
  }
  return heard;
}

test(
  'all that comes on the stream of a call belongs to it, in its order, while others ask the same',
  PATIENCE,
  async (t) => {
    const { bench } = await start(t, { 'tools/call': interview });
    const listeners = await Promise.all(
      ['a', 'b', 'c'].map(async (name) => ({ name, ...(await bench.listener({ capabilities: ASKABLE })) })),
    );
    const all = await Promise.all(listeners.map(({ agent, name }) => interviewed(agent, name)));
    for (const [at, heard] of all.entries()) {
      const name = ['a', 'b', 'c'][at];
      assert.deepEqual(
        heard.map(
          ({ params, result }) => params?.data ?? params?.name ?? params?.message ?? params?.mark ?? result,
        ),
        [name, name, `${name} 1`, `${name} 2`, { content: [], heard: [{ by: name }, { by: name }] }],
      );
    }
  },
);

test('one agent is asked twice in one call, then in another, then another agent', PATIENCE, async (t) => {
  const { bench } = await start(t, { 'tools/call': interview });
  const [a, b] = [await bench.agent({ capabilities: ASKABLE }), await bench.agent({ capabilities: ASKABLE })];
  for (const [agent, name] of [
    [a, 'a'],
    [a, 'again'],
    [b, 'b'],
  ] as const)
    assert.deepEqual((await interviewed(agent, name)).at(-1)?.result.heard, [{ by: name }, { by: name }]);
});

test(
  'progress on a call’s stream under the token of another agent’s call reaches nobody',
  PATIENCE,
  async (t) => {
    const tokens: unknown[] = [];
    const both = gate();
    const { bench } = await start(t, {
      'tools/call': async ({ message, notify }) => {
        tokens.push(message.params._meta.progressToken);
        if (tokens.length === 2) both.open();
        await both.opened;
        for (const progressToken of tokens)
          notify('notifications/progress', { progressToken, progress: 1, message: message.params.name });
        return '{"content":[]}';
      },
    });
    const call = async (name: string) =>
      restOf((await bench.agent()).open(callText(name, '1', ',"_meta":{"progressToken":"t"}')));
    const [a, b] = await Promise.all([call('a'), call('b')]);
    assert.deepEqual(
      a?.flatMap(({ params }) => params ?? []),
      [{ progressToken: 't', progress: 1, message: 'a' }],
    );
    assert.deepEqual(
      b?.flatMap(({ params }) => params ?? []),
      [{ progressToken: 't', progress: 1, message: 'b' }],
    );
  },
);

test(
  'the general stream of a server speaks to the only agent; with two it is told nobody, and why',
  PATIENCE,
  async (t) => {
    const { server, bench } = await start(t);
    const a = await bench.listener({ capabilities: ASKABLE });
    await server.until(() => server.openStreams === 1);
    server.broadcast('notifications/message', { level: 'info', data: 1 });
    assert.equal((await a.stream.message())?.params.data, 1);
    const asked = server.askOnStream('sampling/createMessage', { messages: [] });
    await respond(a.agent, await a.stream.message(), { model: 'm' });
    assert.deepEqual((await asked).result, { model: 'm' });

    const b = await bench.listener({ capabilities: ASKABLE });
    server.broadcast('notifications/message', { level: 'info', data: 2 });
    await bench.dropped('notifications/message');
    assert.match(
      (await server.askOnStream('sampling/createMessage', { messages: [] })).error?.message ?? '',
      /"isolate": "session"/,
    );
    server.broadcast(MARKER);
    for (const { stream } of [a, b]) assert.deepEqual(await heardBefore(stream, MARKER), []);
    await b.agent.send({ method: 'DELETE' });
    server.broadcast('notifications/message', { level: 'info', data: 3 });
    assert.equal((await a.stream.message())?.params.data, 3);
  },
);

test(
  'a message without a sign on the general stream is not of the only call under way',
  PATIENCE,
  async (t) => {
    const release = gate();
    const { server, bench } = await start(t, {
      'tools/call': async () => {
        await release.opened;
        return '{"content":[]}';
      },
    });
    const [a, b] = [
      await bench.listener({ capabilities: ASKABLE }),
      await bench.listener({ capabilities: ASKABLE }),
    ];
    await server.until(() => server.openStreams === 1);
    const call = a.agent.open(callText('x'));
    await server.until(() => server.count('tools/call') === 1);
    assert.equal((await server.askOnStream('elicitation/create', { message: '?' })).error?.code, -32603);
    release.open();
    assert.deepEqual(
      (await restOf(call)).map(({ method }) => method),
      [undefined],
    );
    server.broadcast(MARKER);
    assert.deepEqual(await heardBefore(b.stream, MARKER), []);
  },
);

test(
  'with a connection for each session, a server may ask outside of calls, whoever else is there',
  PATIENCE,
  async (t) => {
    const { server, bench } = await start(t, {}, 'session');
    const agents = [
      await bench.listener({ capabilities: ASKABLE }),
      await bench.listener({ capabilities: ASKABLE }),
    ];
    await server.until(() => server.openStreams === 2);
    assert.equal(server.initialized.length, 2);
    const asked = server.askOnStream('roots/list');
    for (const { agent, stream } of agents) await respond(agent, await stream.message(), { roots: [] });
    assert.deepEqual((await asked).result, { roots: [] });
  },
);

test('elicitations that an error asks for end at the agent that got the error', PATIENCE, async (t) => {
  const { server, bench } = await start(t, {
    'tools/call': () => {
      throw new Refusal(-32042, 'Sign on first', {
        elicitations: [
          { mode: 'url', elicitationId: 'e-1', url: 'https://example.com/1' },
          { mode: 'url', elicitationId: 'e-2', url: 'https://example.com/2' },
        ],
      });
    },
  });
  const [a, b] = [
    await bench.listener({ capabilities: ASKABLE }),
    await bench.listener({ capabilities: ASKABLE }),
  ];
  await server.until(() => server.openStreams === 1);
  assert.equal((await responseOf(a.agent.open(callText('x')))).error?.code, -32042);
  for (const elicitationId of ['e-2', 'e-1'])
    server.broadcast('notifications/elicitation/complete', { elicitationId });
  assert.equal((await a.stream.message())?.params.elicitationId, 'e-2');
  assert.equal((await a.stream.message())?.params.elicitationId, 'e-1');
  server.broadcast('notifications/elicitation/complete', { elicitationId: 'e-3' });
  server.broadcast(MARKER);
  for (const { stream } of [a, b]) assert.deepEqual(await heardBefore(stream, MARKER), []);
});

test(
  'an agent that declared nothing is never asked, and its server learns so at once',
  PATIENCE,
  async (t) => {
    const { bench } = await start(t, { 'tools/call': interview });
    const agent = await bench.agent();
    const messages = await restOf(agent.open(callText('x')));
    assert.deepEqual(
      messages.map(({ method }) => method),
      ['notifications/message', 'notifications/vendor/step', undefined],
    );
    assert.deepEqual(messages.at(-1)?.result.heard, [null, null]);
  },
);

test(
  'a server is told the capabilities of its agents exactly; those that differ get connections of their own',
  PATIENCE,
  async (t) => {
    const { server, bench } = await start(t, { 'tools/call': ({ session }) => JSON.stringify({ session }) });
    const declared = [
      {},
      { roots: { listChanged: true } },
      { sampling: {}, roots: {} },
      { elicitation: { url: {} }, extensions: { 'com.example/x': { n: 1 } } },
    ];
    const sessions = new Map<string, string>();
    for (const capabilities of [...declared, ...declared]) {
      const answer = await responseOf((await bench.agent({ capabilities })).open(callText('x')));
      const key = JSON.stringify(capabilities);
      assert.equal(answer.result.session, sessions.get(key) ?? answer.result.session);
      sessions.set(key, answer.result.session);
    }
    assert.equal(new Set(sessions.values()).size, declared.length);
    assert.deepEqual(
      server.initialized.map(({ params }) => params.capabilities),
      declared,
    );
  },
);

test('the same capabilities in another order and spelling are the same', PATIENCE, async (t) => {
  const { server, bench } = await start(t);
  await bench.agent({ capabilities: { roots: { listChanged: true }, sampling: {} } });
  await bench.agent({ capabilities: { sampling: {}, roots: { listChanged: true } } });
  assert.equal(server.initialized.length, 1);
});

test(
  'an agent’s notifications reach its server: roots, vendor’s own, but not its handshake',
  PATIENCE,
  async (t) => {
    const { server, bench } = await start(t);
    const agent = await bench.agent({ capabilities: ASKABLE });
    for (const method of ['notifications/roots/list_changed', 'notifications/vendor/x', 'foo'])
      await agent.post(JSON.stringify({ jsonrpc: '2.0', method, params: { n: 1 } }));
    await server.until(() => server.notifications.length === 4);
    assert.deepEqual(server.notifications.map(({ method }) => method).sort(), [
      'foo',
      'notifications/initialized',
      'notifications/roots/list_changed',
      'notifications/vendor/x',
    ]);
  },
);

test('another agent’s task is as unknown as one that never was', PATIENCE, async (t) => {
  const asked: string[] = [];
  const known = ({ message }: ServerCall) => {
    asked.push(message.method as string);
    return '{"taskId":"t-1","status":"completed"}';
  };
  const { bench } = await start(t, {
    'tools/call': () => '{"task":{"taskId":"t-1","status":"working"}}',
    'tasks/get': known,
    'tasks/result': known,
    'tasks/cancel': known,
  });
  const [a, b] = [await bench.agent(), await bench.agent()];
  await responseOf(a.open(callText('x', '1', ',"task":{}')));
  const methods = ['tasks/get', 'tasks/result', 'tasks/cancel'];
  for (const method of methods) {
    const refused = await send(b, method, { taskId: 't-1' });
    assert.deepEqual([refused.error?.code, refused.error?.message], [-32602, 'Task not found'], method);
  }
  assert.deepEqual(asked, []);
  for (const method of methods) assert.equal((await send(a, method, { taskId: 't-1' })).result.taskId, 't-1');
  assert.deepEqual(asked, methods);
});

test('a list of tasks shows an agent its own, their bytes unchanged', PATIENCE, async (t) => {
  const listed = ['a', 'b', 'old'].map((taskId) => `{ "taskId":"${taskId}", "n":1.0,"\\u0061":2 }`);
  const text = `{"nextCursor":"c","tasks":[${listed.join(', ')}],"x":1e400}`;
  const { bench } = await start(t, {
    'tools/call': ({ message }) => `{"task":{"taskId":"${message.params.name}","status":"working"}}`,
    'tasks/list': () => text,
  });
  const list = async (agent: TestAgent) =>
    (await agent.post('{"jsonrpc":"2.0","id":"l","method":"tasks/list"}')).text;
  const [a] = [await bench.agent()];
  assert.equal(await list(a), `{"jsonrpc":"2.0","id":"l","result":${text}}`);
  const b = await bench.agent();
  for (const [agent, name] of [
    [a, 'a'],
    [b, 'b'],
  ] as const)
    await responseOf(agent.open(callText(name, '1', ',"task":{}')));
  for (const [agent, item] of [
    [a, listed[0]],
    [b, listed[1]],
  ] as const)
    assert.equal(
      await list(agent),
      `{"jsonrpc":"2.0","id":"l","result":{"nextCursor":"c","tasks":[${item}],"x":1e400}}`,
    );
});

test(
  'an answer that names a member twice is the agent’s, though the gateway cannot choose',
  PATIENCE,
  async (t) => {
    const twice = '{"task":{"taskId":"x"},"task":{"taskId":"y"}}';
    const { bench } = await start(t, {
      'tools/call': () => twice,
      'tasks/list': () => '{"tasks":[],"tasks":[]}',
    });
    const agent = await bench.agent();
    const { text } = await agent.post(callText('x', '1', ',"task":{}'));
    assert.equal(text, `{"jsonrpc":"2.0","id":1,"result":${twice}}`);
    assert.match(
      (await send(agent, 'tasks/list')).error?.message ?? '',
      /"one" answered tasks\/list ambiguously/,
    );
  },
);

test(
  'a request that names a member twice where the gateway must choose is refused and not sent',
  PATIENCE,
  async (t) => {
    const { server, bench } = await start(t, { 'tools/call': () => '{}', 'resources/subscribe': () => '{}' });
    const agent = await bench.agent();
    const twice = [
      '"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1},"_meta":{"progressToken":2}}',
      '"method":"tools/call","params":{"_meta":{"progressToken":1,"progressToken":2}}',
      '"method":"resources/subscribe","params":{"uri":"a","uri":"b"}',
    ];
    for (const body of twice) {
      const answer = await responseOf(agent.open(`{"jsonrpc":"2.0","id":1,${body}}`));
      assert.equal(answer.error?.code, -32600, body);
    }
    const harmless = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":1,"a":2}}';
    assert.deepEqual((await responseOf(agent.open(harmless))).result, {});
    assert.deepEqual([server.count('tools/call'), server.count('resources/subscribe')], [1, 0]);
  },
);

test(
  'a withdrawn question and progress on one keep their bytes but for the id and the token',
  PATIENCE,
  async (t) => {
    const release = gate();
    const { server, bench } = await start(t, {
      'tools/call': async ({ emit }) => {
        emit(
          '{ "jsonrpc":"2.0","id":"q\\/1","method":"sampling/createMessage","params":{"_meta":{"x":1.0,"progressToken":9007199254740993},"maxTokens":1}}',
        );
        await release.opened;
        emit(
          '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q/1", "reason":"\\u0061"}}',
        );
        return '{"content":[]}';
      },
    });
    const agent = await bench.agent({ capabilities: ASKABLE });
    const stream = agent.open(callText('x'));
    const question = await nextText(stream);
    const { id } = JSON.parse(question) as Wire;
    assert.equal(
      question,
      `{ "jsonrpc":"2.0","id":${id},"method":"sampling/createMessage","params":{"_meta":{"x":1.0,"progressToken":${id}},"maxTokens":1}}`,
    );
    await agent.post(
      `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${id},"progress":1e0}}`,
    );
    await server.until(() => server.notifications.some(({ method }) => method === 'notifications/progress'));
    release.open();
    assert.equal(
      await nextText(stream),
      `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}, "reason":"\\u0061"}}`,
    );
  },
);
