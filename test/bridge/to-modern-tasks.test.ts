import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/base/errors.js';
import {
  type BridgedAgent,
  DONE,
  FORM,
  LegacyOnModern,
  said,
  textOf,
  wire,
} from '../support/legacy-on-modern.js';
import type { Wire } from '../support/mcp-server.js';

const NEEDS_TASKS =
  '{"error":{"code":-32021,"message":"tasks","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}';
const CREATED = '{"resultType":"task","taskId":"t\\u002f1","status":"working","pollIntervalMs":500}';
const CALL = '{"name":"x","arguments":{"n":1.0}}';
const ACK = '{"resultType":"complete"}';

/** JSON text of what `tasks/get` shows. */
function state(status: string, more = ''): string {
  return `{"resultType":"complete","taskId":"t/1","status":"${status}"${more}}`;
}

/** A server that makes a task of a call, if it may; `states` are shown one after the other, the last for ever. */
function tasking(states: readonly string[], created = CREATED): LegacyOnModern {
  let at = 0;
  const bench = new LegacyOnModern((request, exchange) => {
    switch (request.method) {
      case 'tools/call':
        return declares(exchange) ? created : NEEDS_TASKS;
      case 'tasks/get':
        return states[Math.min(at++, states.length - 1)] as string;
      default:
        return ACK;
    }
  });
  bench.withdrawn = () => new GatewayError('cancelled', 'withdrawn');
  return bench;
}

function declares(exchange: Parameters<typeof said>[0]): boolean {
  const { extensions } = said(exchange, 'clientCapabilities') as { extensions?: Record<string, unknown> };
  return extensions?.['io.modelcontextprotocol/tasks'] !== undefined;
}

function methods(bench: LegacyOnModern): string[] {
  return bench.sent.map(({ message }) => message.method);
}

/** Lets the next look at the task happen, which is due after so long. */
async function look(bench: LegacyOnModern, delayMs: number): Promise<void> {
  await bench.clock.armed((delay) => delay === delayMs);
  bench.clock.advance(delayMs);
}

function call(bench: LegacyOnModern, signal?: AbortSignal): { agent: BridgedAgent; done: Promise<string> } {
  const agent = bench.agent({ capabilities: '{"elicitation":{},"extensions":{"a/b":{}}}' });
  return { agent, done: agent.request('tools/call', CALL, '"c"', signal) };
}

test('a call that must become a task is followed to its end, and answered as if it were none', async () => {
  const result = '{ "content":[],"n":9007199254740993,"resultType":"complete" }';
  const bench = tasking([
    state('working', ',"pollIntervalMs":700'),
    state('completed', `,"result":${result}`),
  ]);
  const { done } = call(bench);
  await look(bench, 500);
  await look(bench, 700);
  assert.equal(await done, '{"jsonrpc":"2.0","id":"c","result":{ "content":[],"n":9007199254740993 }}');
  assert.deepEqual(methods(bench), ['tools/call', 'tools/call', 'tasks/get', 'tasks/get']);
  assert.deepEqual(bench.sent.map(declares), [false, true, true, true]);
  assert.ok(textOf(bench.sent[2]).includes('"taskId":"t\\u002f1"'));
  const declared = said(bench.sent[1], 'clientCapabilities') as { extensions: object };
  assert.deepEqual(Object.keys(declared.extensions).sort(), ['a/b', 'io.modelcontextprotocol/tasks']);
  assert.deepEqual(wire(bench.sent[1]).params.arguments, { n: 1 });
});

test('a task that failed is answered with the error of the call', async () => {
  const error = '{"code":-32050,"message":"\\u006eo","data":1.0}';
  const bench = tasking([state('failed', `,"error":${error}`)]);
  const { done } = call(bench);
  await look(bench, 500);
  assert.equal(await done, `{"jsonrpc":"2.0","id":"c","error":${error}}`);
});

test('a call that the server answers at once when it may make a task is answered so', async () => {
  const bench = tasking([], DONE);
  assert.equal(await call(bench).done, '{"jsonrpc":"2.0","id":"c","result":{"content":[]}}');
});

test('what a task needs is asked once, and brought to it', async () => {
  const asking = state('input_required', `,"inputRequests":{"k":${FORM}}`);
  const result = state('completed', ',"result":{"content":[]}');
  const bench = tasking([asking, asking, result]);
  const { agent, done } = call(bench);
  await look(bench, 500);
  (await agent.question()).answer('"result":{"action":"accept","content":{"n":1.0}}');
  await look(bench, 1_000);
  await look(bench, 1_000);
  await done;
  assert.equal(agent.asked.length, 1);
  const update = bench.sent.find(({ message }) => message.method === 'tasks/update');
  assert.ok(textOf(update).includes('"inputResponses":{"k":{"action":"accept","content":{"n":1.0}}}'));
  assert.equal(wire(update).params.taskId, 't/1');
});

test('a server may ask for input before it makes a task', async () => {
  const bench = tasking([state('completed', ',"result":{}')]);
  const scripted = bench.script;
  bench.script = (request, exchange) =>
    declares(exchange) && request.method === 'tools/call' && request.params.inputResponses === undefined
      ? `{"resultType":"input_required","inputRequests":{"a":${FORM}}}`
      : scripted(request, exchange);
  const { agent, done } = call(bench);
  (await agent.question()).answer('"result":{}');
  await look(bench, 500);
  assert.equal(await done, '{"jsonrpc":"2.0","id":"c","result":{}}');
});

test('a task is looked at neither without a break nor after an age', async () => {
  for (const [interval, delayMs] of [
    ['1', 100],
    ['86400000', 30_000],
    ['"odd"', 1_000],
  ] as const) {
    const created = `{"resultType":"task","taskId":"t","status":"working","pollIntervalMs":${interval}}`;
    const bench = tasking([state('completed', ',"result":{}')], created);
    const { done } = call(bench);
    await look(bench, delayMs);
    await done;
  }
});

test('a call that is cancelled cancels its task, whatever is under way', async () => {
  const asking = state('input_required', `,"inputRequests":{"k":${FORM}}`);
  for (const phase of ['waiting', 'asking', 'looking']) {
    const bench = tasking([asking]);
    const scripted = bench.script;
    const aborter = new AbortController();
    if (phase === 'looking')
      bench.script = (request, exchange) => {
        if (request.method !== 'tasks/get') return scripted(request, exchange);
        aborter.abort();
        return Promise.reject(new GatewayError('cancelled', 'The request was cancelled'));
      };
    const { agent, done } = call(bench, aborter.signal);
    const ended = assert.rejects(done, { code: 'cancelled' });
    if (phase === 'waiting') await bench.clock.armed((delay) => delay === 500);
    else await look(bench, 500);
    if (phase === 'asking') await agent.question();
    aborter.abort();
    await ended;
    const last = bench.sent.at(-1);
    assert.equal(last?.message.method, 'tasks/cancel', phase);
    assert.equal(wire(last).params.taskId, 't/1');
    assert.equal(last?.signal.aborted, false);
    assert.deepEqual(bench.clock.delays, [], phase);
  }
});

test('a task whose agent does not answer is cancelled', async () => {
  const bench = tasking([state('input_required', `,"inputRequests":{"k":${FORM}}`)]);
  const { agent, done } = call(bench);
  const ended = assert.rejects(done, { code: 'agent_unreachable', message: /"k"/ });
  await look(bench, 500);
  (await agent.question()).answer('"error":{"code":1,"message":"no"}');
  await ended;
  assert.equal(methods(bench).at(-1), 'tasks/cancel');
});

test('a task that the server cancelled, lost or garbled ends the call', async () => {
  for (const [shown, expected] of [
    [state('cancelled'), { code: 'cancelled', message: 'Server "one" cancelled the call' }],
    [state('completed'), { code: 'server_protocol' }],
    [state('asleep'), { code: 'server_protocol' }],
    [state('failed', ',"error":7'), { code: 'server_protocol' }],
    [state('completed', ',"result":{"resultType":"input_required"}'), { code: 'server_protocol' }],
  ] as const) {
    const bench = tasking([shown]);
    const { done } = call(bench);
    const ended = assert.rejects(done, expected, shown);
    await look(bench, 500);
    await ended;
    assert.equal(methods(bench).at(-1), shown.includes('asleep') ? 'tasks/cancel' : 'tasks/get');
  }
  const bench = tasking(['{"error":{"code":-32602,"message":"unknown task"}}']);
  const { done } = call(bench);
  await look(bench, 500);
  assert.equal(await done, '{"jsonrpc":"2.0","id":"c","error":{"code":-32602,"message":"unknown task"}}');
});

test('a task without an id is a fault of the server', async () => {
  for (const created of ['{"resultType":"task"}', '{"resultType":"task","taskId":1}'])
    await assert.rejects(call(tasking([], created)).done, { code: 'server_protocol' });
});

test('a server that needs more than tasks, or of another method, is not asked again', async () => {
  const more =
    '{"extensions":{"io.modelcontextprotocol/tasks":{}},"sampling":{}}|{"extensions":{"io.modelcontextprotocol/tasks":{},"a/b":{}}}|{"extensions":{}}|{}|7';
  for (const required of more.split('|')) {
    const bench = new LegacyOnModern(
      () => `{"error":{"code":-32021,"message":"no","data":{"requiredCapabilities":${required}}}}`,
    );
    assert.equal((JSON.parse(await call(bench).done) as Wire).error?.code, -32602);
    assert.equal(bench.sent.length, 1, required);
  }
  const bench = new LegacyOnModern(() => NEEDS_TASKS);
  await bench.agent().request('prompts/get', '{"name":"p"}');
  assert.equal(bench.sent.length, 1);
});
