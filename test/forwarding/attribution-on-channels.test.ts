import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { TestAgent } from '../support/agent-gateway.js';
import type { Incoming } from '../support/agent-http.js';
import { type ChannelKind, ChannelServer } from '../support/channel-server.js';
import {
  type Forwarding,
  forwarding,
  nextText,
  PATIENCE,
  responseOf,
  restOf,
} from '../support/forwarding.js';
import { HeldCalls } from '../support/held-calls.js';
import type { Wire } from '../support/mcp-server.js';

const CHANNELS: readonly ChannelKind[] = ['stdio', 'sse'];
const ASKABLE = { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true }, tasks: {} };
const TASK = ',"task":{"ttl":60000},"_meta":{"progressToken":"mine"}';

interface Channel {
  readonly server: ChannelServer;
  readonly held: HeldCalls;
  readonly bench: Forwarding;
  /** An agent that can be asked, and its general stream. */
  join(): Promise<{ readonly agent: TestAgent; readonly stream: Incoming }>;
}

async function channel(t: TestContext, kind: ChannelKind): Promise<Channel> {
  const server = await ChannelServer.start(kind);
  const bench = await forwarding(t, { servers: { one: server.entry }, behind: [server] });
  return {
    server,
    held: new HeldCalls(server),
    bench,
    join: () => bench.listener({ capabilities: ASKABLE }),
  };
}

/** Runs a test on each kind of channel that carries everything. */
function onChannels(name: string, run: (channel: Channel) => Promise<void>): void {
  for (const kind of CHANNELS) test(`${kind}: ${name}`, PATIENCE, async (t) => run(await channel(t, kind)));
}

function respond(agent: TestAgent, question: Wire | undefined, result: object): Promise<unknown> {
  return agent.post(JSON.stringify({ jsonrpc: '2.0', id: question?.id, result }));
}

/** What a general stream brings before a marker that is sent to every agent. */
async function heardBefore(stream: Incoming, marker: string): Promise<Wire[]> {
  const heard: Wire[] = [];
  for (let message = await stream.message(); message; message = await stream.message()) {
    if (message.method === marker) return heard;
    heard.push(message);
  }
  throw new Error('The stream ended');
}

const MARKER = 'notifications/prompts/list_changed';

onChannels('what a server says outside of any call goes to the only agent there is', async (c) => {
  const { agent, stream } = await c.join();
  c.server.notify('notifications/message', { level: 'info', data: 'for one' });
  c.server.notify('notifications/vendor/thing', { n: 1 });
  assert.equal((await stream.message())?.params.data, 'for one');
  assert.deepEqual((await stream.message())?.params, { n: 1 });
  const asked = c.server.ask('roots/list');
  const question = await stream.message();
  await respond(agent, question, { roots: [{ uri: 'file:///a' }] });
  assert.deepEqual((await asked).result, { roots: [{ uri: 'file:///a' }] });
});

onChannels(
  'with two agents and nothing that tells, a question is refused and a notification dropped',
  async (c) => {
    const [a, b] = [await c.join(), await c.join()];
    await c.held.begin(a.agent, 'a');
    await c.held.begin(b.agent, 'b');
    const refused = await c.server.ask('elicitation/create', { message: 'Password?', requestedSchema: {} });
    assert.equal(refused.error?.code, -32603);
    assert.match(refused.error?.message ?? '', /"isolate": "session"/);
    c.server.notify('notifications/message', { level: 'info', data: 'secret' });
    assert.match(await c.bench.dropped('notifications/message'), /several agents/);
    c.server.notify(MARKER);
    assert.deepEqual(await heardBefore(a.stream, MARKER), []);
    assert.deepEqual(await heardBefore(b.stream, MARKER), []);
  },
);

onChannels(
  'a question belongs to the agent of the only request under way, and comes on its stream',
  async (c) => {
    const [a, b] = [await c.join(), await c.join()];
    const { answer } = await c.held.begin(a.agent, 'a');
    for (const round of [1, 2]) {
      const asked = c.server.ask('elicitation/create', { message: `Round ${round}`, requestedSchema: {} });
      const question = await (await answer).message();
      assert.equal(question?.params.message, `Round ${round}`);
      await respond(a.agent, question, { action: 'accept', content: { round } });
      assert.deepEqual((await asked).result, { action: 'accept', content: { round } });
    }
    c.held.answer('a');
    assert.equal((await restOf(answer)).length, 1);
    const second = await c.held.begin(b.agent, 'b');
    const asked = c.server.ask('sampling/createMessage', { messages: [], maxTokens: 1 });
    await respond(b.agent, await (await second.answer).message(), { role: 'assistant' });
    assert.deepEqual((await asked).result, { role: 'assistant' });
    c.server.notify(MARKER);
    assert.deepEqual(await heardBefore(a.stream, MARKER), []);
  },
);

onChannels('requests of one agent alone are under way: what the server says is for that agent', async (c) => {
  const [a, b] = [await c.join(), await c.join()];
  await c.held.begin(a.agent, 'first', '1');
  await c.held.begin(a.agent, 'second', '2');
  const asked = c.server.ask('sampling/createMessage', { messages: [], maxTokens: 1 });
  await respond(a.agent, await a.stream.message(), { role: 'user' });
  assert.deepEqual((await asked).result, { role: 'user' });
  c.server.notify(MARKER);
  assert.deepEqual(await heardBefore(b.stream, MARKER), []);
});

onChannels(
  'progress of parallel calls reaches each call under its own token, spelled as the agent spelled it',
  async (c) => {
    const [a, b] = [await c.join(), await c.join()];
    const token = (text: string) => `,"_meta":{"progressToken":${text}}`;
    const calls = [
      { name: 'a', given: '1', open: await c.held.begin(a.agent, 'a', '1', token('1')) },
      { name: 'b', given: '1', open: await c.held.begin(b.agent, 'b', '1', token('1')) },
      { name: 'c', given: '"1"', open: await c.held.begin(b.agent, 'c', '2', token('"1"')) },
      { name: 'd', given: '0', open: await c.held.begin(a.agent, 'd', '"x"', token('0')) },
    ];
    assert.equal(new Set(calls.map(({ name }) => c.held.token(name))).size, 4);
    for (const { name } of [...calls].reverse())
      c.server.notify('notifications/progress', {
        progressToken: c.held.token(name),
        progress: 1,
        message: name,
      });
    for (const { name, given, open } of calls) {
      const data = await nextText(open.answer);
      assert.equal(
        data,
        `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${given},"progress":1,"message":"${name}"}}`,
      );
    }
  },
);

onChannels('progress under a token that nobody gave is dropped and fails nothing', async (c) => {
  const a = await c.join();
  const { answer } = await c.held.begin(a.agent, 'a');
  for (const progressToken of [4711, 'invented', null, { a: 1 }])
    c.server.notify('notifications/progress', { progressToken, progress: 1 });
  c.server.notify('notifications/progress');
  await c.bench.dropped('notifications/progress');
  c.held.answer('a');
  assert.deepEqual((await responseOf(answer)).result, { content: [] });
});

onChannels(
  'what a server still says of a cancelled call never reaches the agent of another one',
  async (c) => {
    const [a, b] = [await c.join(), await c.join()];
    await c.held.begin(a.agent, 'a', '7');
    await a.agent.post('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}');
    await c.server.until(() => c.server.count('notifications/cancelled') === 1);
    const { answer } = await c.held.begin(b.agent, 'b');
    c.server.notify('notifications/message', { level: 'info', data: 'of a' });
    const refused = await c.server.ask('elicitation/create', {
      message: 'Password of a?',
      requestedSchema: {},
    });
    assert.equal(refused.error?.code, -32603);
    c.held.answer('b');
    assert.deepEqual(await responseOf(answer), { jsonrpc: '2.0', id: 1, result: { content: [] } });
  },
);

onChannels(
  'what a server still says of the call of an agent that left never reaches the one that stays',
  async (c) => {
    const [a, b] = [await c.join(), await c.join()];
    await c.held.begin(a.agent, 'a');
    await a.agent.send({ method: 'DELETE' });
    await c.server.until(() => c.server.count('notifications/cancelled') === 1);
    const refused = await c.server.ask('elicitation/create', {
      message: 'Password of a?',
      requestedSchema: {},
    });
    assert.equal(refused.error?.code, -32603);
    c.server.notify(MARKER);
    assert.deepEqual(await heardBefore(b.stream, MARKER), []);
  },
);

onChannels(
  'a task is its agent’s: status, related questions and late progress reach that agent only',
  async (c) => {
    const [a, b] = [await c.join(), await c.join()];
    const { answer } = await c.held.begin(a.agent, 'a', '1', TASK);
    const token = c.held.token('a');
    c.held.answer('a', '{"task":{"taskId":"t-1","status":"working"}}');
    await (await answer).text();
    await c.held.begin(b.agent, 'b');
    const related = { _meta: { 'io.modelcontextprotocol/related-task': { taskId: 't-1' } } };
    c.server.notify('notifications/tasks/status', { taskId: 't-1', status: 'input_required' });
    c.server.notify('notifications/progress', { progressToken: token, progress: 2 });
    c.server.notify('notifications/message', { level: 'info', data: 1, ...related });
    const asked = c.server.ask('elicitation/create', { message: 'Go on?', requestedSchema: {}, ...related });
    assert.equal((await a.stream.message())?.params.status, 'input_required');
    assert.deepEqual((await a.stream.message())?.params, { progressToken: 'mine', progress: 2 });
    assert.equal((await a.stream.message())?.params.data, 1);
    await respond(a.agent, await a.stream.message(), { action: 'decline' });
    assert.deepEqual((await asked).result, { action: 'decline' });
    c.server.notify(MARKER);
    assert.deepEqual(await heardBefore(b.stream, MARKER), []);
  },
);

onChannels(
  'late progress of a task comes on the stream of what its agent asks where it has no general one',
  async (c) => {
    const [a, b] = [await c.bench.agent({ capabilities: ASKABLE }), await c.join()];
    const { answer } = await c.held.begin(a, 'a', '1', TASK);
    const token = c.held.token('a');
    c.held.answer('a', '{"task":{"taskId":"t-1","status":"working"}}');
    await (await answer).text();
    c.server.on['tasks/result'] = () => undefined;
    const result = a.open('{"jsonrpc":"2.0","id":2,"method":"tasks/result","params":{"taskId":"t-1"}}');
    await c.server.until(() => c.server.count('tasks/result') === 1);
    await c.held.begin(b.agent, 'b');
    c.server.notify('notifications/progress', { progressToken: token, progress: 3 });
    assert.deepEqual((await (await result).message())?.params, { progressToken: 'mine', progress: 3 });
  },
);

onChannels(
  'a sign that nobody knows is no reason to take the agent of the only request for the one meant',
  async (c) => {
    const [a, b] = [await c.join(), await c.join()];
    const { answer } = await c.held.begin(a.agent, 'a');
    const related = { _meta: { 'io.modelcontextprotocol/related-task': { taskId: 'unknown' } } };
    c.server.notify('notifications/tasks/status', { taskId: 'unknown', status: 'working' });
    await c.bench.dropped('notifications/tasks/status');
    const refused = await c.server.ask('elicitation/create', {
      message: '?',
      requestedSchema: {},
      ...related,
    });
    assert.equal(refused.error?.code, -32603);
    c.server.notify('notifications/elicitation/complete', { elicitationId: 'unknown' });
    await c.bench.dropped('notifications/elicitation/complete');
    c.held.answer('a');
    assert.deepEqual((await responseOf(answer)).result, { content: [] });
    c.server.notify(MARKER);
    assert.deepEqual(await heardBefore(b.stream, MARKER), []);
  },
);

onChannels('a task that an agent made of a server’s question is asked of that agent', async (c) => {
  const [a, b] = [await c.join(), await c.join()];
  const { answer } = await c.held.begin(a.agent, 'a');
  const asked = c.server.ask('sampling/createMessage', { messages: [], maxTokens: 1, task: { ttl: 1000 } });
  await respond(a.agent, await (await answer).message(), { task: { taskId: 'of-a', status: 'working' } });
  assert.equal((await asked).result.task.taskId, 'of-a');
  c.held.answer('a');
  await (await answer).text();
  await c.held.begin(b.agent, 'b');
  const outcome = c.server.ask('tasks/result', { taskId: 'of-a' });
  const question = await a.stream.message();
  assert.equal(question?.method, 'tasks/result');
  await respond(a.agent, question, { role: 'assistant' });
  assert.deepEqual((await outcome).result, { role: 'assistant' });
  const unknown = await c.server.ask('tasks/get', { taskId: 'of-nobody' });
  assert.equal(unknown.error?.code, -32603);
  c.server.notify(MARKER);
  assert.deepEqual(await heardBefore(b.stream, MARKER), []);
});

onChannels('two agents that chose the same task id are not asked about each other’s task', async (c) => {
  const [a, b] = [await c.join(), await c.join()];
  for (const { agent } of [a, b]) {
    const { answer } = await c.held.begin(agent, 'x');
    const asked = c.server.ask('sampling/createMessage', { messages: [], maxTokens: 1, task: {} });
    await respond(agent, await (await answer).message(), { task: { taskId: 'same', status: 'working' } });
    await asked;
    c.held.answer('x');
    await (await answer).text();
  }
  assert.equal((await c.server.ask('tasks/result', { taskId: 'same' })).error?.code, -32603);
});

onChannels('the end of an elicitation by URL is told to the agent that was sent there', async (c) => {
  const [a, b] = [await c.join(), await c.join()];
  const { answer } = await c.held.begin(a.agent, 'a');
  const params = { mode: 'url', elicitationId: 'e-1', url: 'https://example.com', message: 'Go' };
  const asked = c.server.ask('elicitation/create', params);
  const question = await (await answer).message();
  assert.deepEqual(question?.params, params);
  await respond(a.agent, question, { action: 'accept' });
  await asked;
  c.held.answer('a');
  await (await answer).text();
  await c.held.begin(b.agent, 'b');
  c.server.notify('notifications/elicitation/complete', { elicitationId: 'e-1' });
  assert.deepEqual((await a.stream.message())?.params, { elicitationId: 'e-1' });
  c.server.notify(MARKER);
  assert.deepEqual(await heardBefore(b.stream, MARKER), []);
});

onChannels('a request of the server with the id of a request of ours is a request', async (c) => {
  const a = await c.join();
  const { answer } = await c.held.begin(a.agent, 'a');
  const { id } = c.held.get('a').message;
  const asked = c.server.ask('sampling/createMessage', { messages: [], maxTokens: 1 }, JSON.stringify(id));
  await respond(a.agent, await (await answer).message(), { role: 'assistant' });
  const response = await asked;
  assert.deepEqual([response.id, response.result], [id, { role: 'assistant' }]);
  c.held.answer('a');
  assert.deepEqual((await (await answer).message())?.result, { content: [] });
});

onChannels('a server that withdraws its question does so at the agent, in its own words', async (c) => {
  const a = await c.join();
  const { answer } = await c.held.begin(a.agent, 'a');
  void c.server.ask('sampling/createMessage', { messages: [], maxTokens: 1 }, '"q\\u0031"');
  const question = await (await answer).message();
  c.server.say(
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"no \\u002f longer","requestId":"q1","_meta":{"n":1.0}}}',
  );
  assert.equal(
    await nextText(answer),
    `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"no \\u002f longer","requestId":${question?.id},"_meta":{"n":1.0}}}`,
  );
  await respond(a.agent, question, { late: true });
  c.held.answer('a');
  await (await answer).text();
  assert.ok(c.server.received.every((message) => message.result?.late !== true));
});

onChannels(
  'a question in a call that is cancelled is withdrawn, and the server does not wait for its answer',
  async (c) => {
    const a = await c.join();
    const { answer } = await c.held.begin(a.agent, 'a', '5');
    const asked = c.server.ask('elicitation/create', { message: '?', requestedSchema: {} });
    const question = await (await answer).message();
    await a.agent.post('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}');
    assert.equal((await asked).error?.code, -32603);
    assert.notEqual(question?.id, undefined);
  },
);

onChannels('an agent’s progress on a question reaches the server under the server’s token', async (c) => {
  const a = await c.join();
  const { answer } = await c.held.begin(a.agent, 'a');
  const asked = c.server.ask('sampling/createMessage', {
    messages: [],
    maxTokens: 1,
    _meta: { progressToken: 'its/own' },
  });
  const question = await (await answer).message();
  const token = question?.params._meta.progressToken;
  await a.agent.post(
    `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1.0,"progressToken":${JSON.stringify(token)}}}`,
  );
  await c.server.until(() => c.server.count('notifications/progress') === 1);
  assert.equal(
    c.server.raw.find((raw) => raw.includes('notifications/progress')),
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1.0,"progressToken":"its/own"}}',
  );
  await respond(a.agent, question, { role: 'assistant' });
  await asked;
});

onChannels('a question for a capability that the agent did not declare is refused at once', async (c) => {
  const plain = await c.bench.listener();
  const { answer } = await c.held.begin(plain.agent, 'a');
  for (const method of ['sampling/createMessage', 'elicitation/create', 'roots/list'])
    assert.equal((await c.server.ask(method, {})).error?.code, -32601, method);
  c.held.answer('a');
  assert.equal((await restOf(answer)).length, 1);
});

onChannels(
  'a message that names a member twice is refused or dropped, and everything else goes on',
  async (c) => {
    const a = await c.join();
    const { answer } = await c.held.begin(a.agent, 'a', '1', TASK);
    c.server.say(
      '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","level":"debug"}}',
    );
    await c.bench.dropped('notifications/message');
    c.server.say(
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progressToken":2}}',
    );
    await c.bench.dropped('notifications/progress');
    const response = c.server.ask('tasks/list', {}, '77');
    c.server.say('{"jsonrpc":"2.0","id":78,"method":"tasks/get","params":{"taskId":"x","taskId":"y"}}');
    await c.server.until(() => c.server.received.some((message) => message.id === 78));
    assert.equal(c.server.received.find((message) => message.id === 78)?.error?.code, -32600);
    const question = await (await answer).message();
    await respond(a.agent, question, {});
    await response;
    c.held.answer('a', '{"task":{"taskId":"t","taskId":"u"}}');
    const rest = await (await answer).rest();
    assert.deepEqual(rest.at(-1)?.result, { task: { taskId: 'u' } });
  },
);

onChannels('a ping of the server is answered without any agent, whatever its id', async (c) => {
  await c.bench.agent();
  await c.bench.agent();
  for (const id of ['0', '"p"', '9007199254740993']) {
    c.server.say(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`);
    await c.server.until(() => c.server.raw.includes(`{"jsonrpc":"2.0","id":${id},"result":{}}`));
  }
});

test(
  'sse: what comes in one piece with the endpoint is neither lost nor the end of the connection',
  PATIENCE,
  async (t) => {
    const server = await ChannelServer.start('sse');
    server.greeting = '{"jsonrpc":"2.0","id":"early","method":"ping"}';
    const bench = await forwarding(t, { servers: { one: server.entry }, behind: [server] });
    await bench.agent();
    await server.until(() => server.raw.includes('{"jsonrpc":"2.0","id":"early","result":{}}'));
    assert.equal(server.connections, 1);
  },
);
