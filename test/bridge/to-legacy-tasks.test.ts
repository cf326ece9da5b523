import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { PATIENCE } from '../support/forwarding.js';
import { Refusal, type ServerCall, type ServerHandler, type Wire } from '../support/mcp-server.js';
import { ADA, FORM, type ModernOnLegacy, modernOnLegacy, told } from '../support/modern-on-legacy.js';

const TASKS = 'io.modelcontextprotocol/tasks';
const KNOWS = { declaration: { capabilities: { elicitation: {}, extensions: { [TASKS]: {} } } } };
const OFFERS = { tools: { listChanged: true }, tasks: { cancel: {}, requests: { tools: { call: {} } } } };
const TASK = {
  ...{ taskId: 't1', status: 'working', createdAt: '2025-11-25T10:30:00Z', ttl: 60_000, pollInterval: 5 },
  ...{ lastUpdatedAt: '2025-11-25T10:30:01Z' },
};
/** The same as the extension has it. */
const { ttl: ttlMs, pollInterval: pollIntervalMs, ...REST } = TASK;
const SHOWN = { ...REST, ttlMs, pollIntervalMs };

interface Tasks {
  readonly bench: ModernOnLegacy;
  /** What the server holds of its one task. */
  task: object;
}

/** A server with a tool `slow` that is a task always, and a tool `ask` that never is. */
async function tasksOn(
  t: TestContext,
  on: Record<string, ServerHandler> = {},
  entry: object = {},
): Promise<Tasks> {
  const tasks: Tasks = {
    task: TASK,
    bench: await modernOnLegacy(t, {
      capabilities: OFFERS,
      entry,
      call: ({ message }) => {
        const { name, task } = message.params;
        return task ? JSON.stringify({ task: tasks.task, _meta: { a: 1 } }) : told(`${name} ran`);
      },
      on: {
        'tools/list': ({ message }) =>
          message.params?.cursor === '2'
            ? '{"tools":[{"name":"slow","inputSchema":{},"execution":{"taskSupport":"required"}}]}'
            : '{"tools":[{"name":"ask","inputSchema":{},"execution":{"taskSupport":"optional"}}],"nextCursor":"2"}',
        'tasks/get': () => JSON.stringify(tasks.task),
        ...on,
      },
    }),
  };
  return tasks;
}

function followed(bench: ModernOnLegacy, method: string, params: object = {}): Promise<Wire> {
  return bench.send(method, { taskId: 't1', ...params }, KNOWS);
}

test(
  'a tool that is a task always is called as one, and the task is shown as the extension has it',
  PATIENCE,
  async (t) => {
    const { bench } = await tasksOn(t);
    const { result } = await bench.call({ ...KNOWS, params: { name: 'slow' } });
    assert.deepEqual(result, { resultType: 'task', ...SHOWN });
    const plain = await bench.call(KNOWS);
    assert.equal(plain.result.content[0].text, '"ask ran"');
    assert.equal(bench.server.count('tools/list'), 2);
  },
);

test('an agent that knows no tasks is told that a tool needs them, and nothing runs', PATIENCE, async (t) => {
  const { bench } = await tasksOn(t);
  const answer = await bench.post('tools/call', { name: 'slow' });
  const { error } = await answer.json();
  assert.deepEqual([answer.status, error?.code], [400, -32021]);
  const data = error?.data as { requiredCapabilities?: object } | undefined;
  assert.deepEqual(data?.requiredCapabilities, { extensions: { [TASKS]: {} } });
  assert.equal(bench.server.count('tools/call'), 0);
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
    assert.equal((await bench.send(method, { taskId: 't1' })).error?.code, -32021, method);
});

test('a server without tasks has none of their methods, and is asked for no list', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t, { call: () => told('done') });
  await bench.call(KNOWS);
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
    assert.equal((await followed(bench, method)).error?.code, -32601, method);
  assert.equal(bench.server.count('tools/list'), 0);
  assert.equal((await bench.send('server/discover', {}, KNOWS)).result.capabilities.extensions, undefined);
});

test('discovery announces the extension in place of the older capability', PATIENCE, async (t) => {
  const { bench } = await tasksOn(t);
  const { capabilities } = (await bench.send('server/discover', {}, KNOWS)).result;
  assert.deepEqual(capabilities, { tools: { listChanged: true }, extensions: { [TASKS]: {} } });
});

test('what a list says by now counts', PATIENCE, async (t) => {
  const { bench } = await tasksOn(t);
  await bench.call({ ...KNOWS, params: { name: 'slow' } });
  bench.server.on['tools/list'] = () =>
    '{"tools":[{"name":"slow","inputSchema":{}},{"name":"ask","inputSchema":{},"execution":{"taskSupport":"required"}}]}';
  await bench.send('tools/list', {}, KNOWS);
  assert.equal((await bench.call({ ...KNOWS, params: { name: 'slow' } })).result.resultType, 'complete');
  assert.equal((await bench.call(KNOWS)).result.resultType, 'task');
});

test('the end of a task brings its result, in the server’s own bytes', PATIENCE, async (t) => {
  const result = '{"content":[],"n":9007199254740993,"isError":true}';
  const marked = result.replace('{', '{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}},');
  const tasks = await tasksOn(t, { 'tasks/result': () => marked });
  for (const status of ['completed', 'failed']) {
    tasks.task = { ...TASK, status };
    const answer = await tasks.bench.post('tasks/get', { taskId: 't1' }, KNOWS);
    const text = await answer.text();
    assert.ok(text.includes(`"result":${result.replace('{', '{"_meta":{},')}`), text);
    const shown = JSON.parse(text).result;
    delete shown.result;
    assert.deepEqual(shown, { resultType: 'complete', ...SHOWN, status: 'completed' });
  }
});

test('a task that failed brings its error, and one that was cancelled nothing', PATIENCE, async (t) => {
  const tasks = await tasksOn(t, {
    'tasks/result': () => {
      throw new Refusal(-32000, 'broke', { n: 1 });
    },
  });
  tasks.task = { ...TASK, status: 'failed' };
  const failed = await followed(tasks.bench, 'tasks/get');
  const error = { code: -32000, message: 'broke', data: { n: 1 } };
  assert.deepEqual(failed.result, { resultType: 'complete', ...SHOWN, status: 'failed', error });
  tasks.task = { ...TASK, status: 'cancelled' };
  const cancelled = await followed(tasks.bench, 'tasks/get');
  assert.deepEqual(cancelled.result, { resultType: 'complete', ...SHOWN, status: 'cancelled' });
});

test(
  'what a task asks is shown until it is answered, under keys that are never used again',
  PATIENCE,
  async (t) => {
    const heard: unknown[] = [];
    const tasks = await tasksOn(t, {
      'tasks/result': async ({ ask }: ServerCall) => {
        for (let round = 1; round <= 2; round++) {
          heard.push((await ask('elicitation/create', { ...FORM, message: `${round}` })).result);
          tasks.task = { ...TASK, status: round === 1 ? 'input_required' : 'completed' };
        }
        return told('done');
      },
    });
    tasks.task = { ...TASK, status: 'input_required' };
    const first = await followed(tasks.bench, 'tasks/get');
    assert.equal(first.result.status, 'input_required');
    assert.deepEqual((await followed(tasks.bench, 'tasks/get')).result, first.result);
    const keys: string[] = [];
    let shown = first;
    for (let round = 1; round <= 2; round++) {
      const [[key, request] = ['']] = Object.entries<Wire>(shown.result.inputRequests);
      assert.equal(request?.params.message, String(round));
      keys.push(key);
      const answer = { action: 'accept', content: { round } };
      const updated = await followed(tasks.bench, 'tasks/update', {
        inputResponses: { [key]: answer, other: {} },
      });
      assert.deepEqual(updated.result, { resultType: 'complete' });
      await tasks.bench.server.until(() => heard.length === round);
      shown = await followed(tasks.bench, 'tasks/get');
    }
    assert.equal(new Set(keys).size, 2);
    assert.equal(shown.result.status, 'completed');
    assert.equal(shown.result.result.content[0].text, '"done"');
  },
);

test(
  'a task is asked on though nobody could wait for its result any more, under another key',
  PATIENCE,
  async (t) => {
    let heard = 0;
    const tasks = await tasksOn(t, {
      'tasks/result': async ({ ask }: ServerCall) => {
        await ask('elicitation/create', FORM);
        heard++;
        throw new Refusal(-32603, 'that took too long');
      },
    });
    tasks.task = { ...TASK, status: 'input_required' };
    const keys: string[] = [];
    while (keys.length < 2) {
      const { result } = await followed(tasks.bench, 'tasks/get');
      // What was waited for has failed, which may not be known yet.
      if (result.status === 'working') continue;
      const [key = ''] = Object.keys(result.inputRequests);
      keys.push(key);
      await followed(tasks.bench, 'tasks/update', { inputResponses: { [key]: ADA } });
      await tasks.bench.server.until(() => heard === keys.length);
    }
    assert.equal(new Set(keys).size, 2);
  },
);

test('a task that says it asks and does not is shown as working', PATIENCE, async (t) => {
  const tasks = await tasksOn(t, { 'tasks/result': () => new Promise(() => {}) });
  tasks.task = { ...TASK, status: 'input_required' };
  const looked = followed(tasks.bench, 'tasks/get');
  await tasks.bench.clock.armed((delayMs) => delayMs === 1_000);
  await tasks.bench.server.until(() => tasks.bench.server.count('tasks/result') === 1);
  tasks.bench.clock.advance(1_000);
  assert.deepEqual((await looked).result, { resultType: 'complete', ...SHOWN });
});

test('a task whose agent is silent is asked no longer', PATIENCE, async (t) => {
  let refused: Wire | undefined;
  const tasks = await tasksOn(t, {
    'tasks/result': async ({ ask }: ServerCall) => {
      refused = await ask('elicitation/create', FORM);
      return '{}';
    },
  });
  tasks.task = { ...TASK, status: 'input_required' };
  await followed(tasks.bench, 'tasks/get');
  tasks.bench.clock.advance(24 * 3_600_000);
  await tasks.bench.server.until(() =>
    tasks.bench.server.notifications.some(({ method }) => method === 'notifications/cancelled'),
  );
  assert.equal(refused?.result, undefined);
});

test('to cancel is acknowledged, also what is over, but not what never was', PATIENCE, async (t) => {
  let known = true;
  const refuse = () => {
    throw new Refusal(-32602, 'no');
  };
  const tasks = await tasksOn(t, {
    'tasks/cancel': refuse,
    'tasks/get': () => (known ? JSON.stringify(TASK) : refuse()),
  });
  assert.deepEqual((await followed(tasks.bench, 'tasks/cancel')).result, { resultType: 'complete' });
  tasks.bench.server.on['tasks/cancel'] = () => JSON.stringify({ ...TASK, status: 'cancelled' });
  assert.deepEqual((await followed(tasks.bench, 'tasks/cancel')).result, { resultType: 'complete' });
  tasks.bench.server.on['tasks/cancel'] = refuse;
  known = false;
  for (const method of ['tasks/cancel', 'tasks/update', 'tasks/get'])
    assert.equal((await followed(tasks.bench, method)).error?.code, -32602, method);
});

test('nobody sees the task of another caller that shares the server’s connection', PATIENCE, async (t) => {
  const { bench } = await tasksOn(t, {}, { forwardAuthorization: false });
  await bench.call({ ...KNOWS, token: 'A', params: { name: 'slow' } });
  await bench.call({ ...KNOWS, token: 'B' });
  const get = (token: string) => bench.send('tasks/get', { taskId: 't1' }, { ...KNOWS, token });
  assert.equal((await get('B')).error?.code, -32602);
  assert.equal((await get('A')).result.taskId, 't1');
});

test('answers reach a task in their own bytes', PATIENCE, async (t) => {
  let raw = '';
  const tasks = await tasksOn(t, {
    'tasks/result': async ({ ask }: ServerCall) => {
      raw = JSON.stringify((await ask('elicitation/create', FORM)).result);
      return '{}';
    },
  });
  tasks.task = { ...TASK, status: 'input_required' };
  const { result } = await followed(tasks.bench, 'tasks/get');
  const [key = ''] = Object.keys(result.inputRequests);
  await followed(tasks.bench, 'tasks/update', { inputResponses: { [key]: ADA } });
  await tasks.bench.server.until(() => raw !== '');
  assert.equal(raw, JSON.stringify(ADA));
});
