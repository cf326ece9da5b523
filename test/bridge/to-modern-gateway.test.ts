import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { LEGACY_REVISIONS } from '../../src/protocol/revisions.js';
import { FORM, inputRequired } from '../support/legacy-on-modern.js';
import { greet } from '../support/line-agent.js';
import { McpServer, type McpServerOptions, Refusal, type ServerCall } from '../support/mcp-server.js';
import { DISCOVERED } from '../support/modern-text.js';
import { openGateway, type PoolBench, remote } from '../support/pool-bench.js';
import { RawAgent } from '../support/raw-agent.js';
import { stdioGateway } from '../support/stdio-gateway.js';

const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

/** A scripted server that speaks 2026-07-28 alone, and a gateway before it. */
async function stand(
  t: TestContext,
  on: McpServerOptions['on'] = {},
): Promise<{ readonly server: McpServer; readonly bench: PoolBench }> {
  const server = await McpServer.start({
    sessions: false,
    greet: () => {
      throw new Refusal(-32022, 'Unsupported', { supported: ['2026-07-28'], requested: '2025-11-25' });
    },
    on: { 'server/discover': () => DISCOVERED, ...on },
  });
  t.after(() => server.close());
  return { server, bench: await openGateway(t, { one: remote(server.url) }) };
}

/** Answers a call with its own arguments, after a question that it asks first. */
function askThenEcho({ message }: ServerCall): string {
  const { inputResponses, requestState, name } = message.params;
  if (inputResponses === undefined) return inputRequired(`{"who":${FORM}}`, JSON.stringify(`for ${name}`));
  return JSON.stringify({ resultType: 'complete', content: [], name, inputResponses, requestState });
}

test('an agent of each revision lists and calls on a server that refuses `initialize`', async (t) => {
  const calls: ServerCall[] = [];
  const { bench, server } = await stand(t, {
    'tools/list': () =>
      '{"resultType":"complete","tools":[{"name":"t","inputSchema":{}}],"ttlMs":60000,"cacheScope":"public"}',
    'tools/call': (call) => {
      calls.push(call);
      return '{"resultType":"complete","content":[],"n":9007199254740993}';
    },
  });
  for (const revision of LEGACY_REVISIONS) {
    const headers = { 'mcp-protocol-version': revision };
    const agent = await RawAgent.connect(bench.url(), { revision });
    assert.equal(JSON.parse(agent.initializeText).result.protocolVersion, revision);
    const list = await agent.exchange('{"jsonrpc":"2.0","id":7,"method":"tools/list"}', headers);
    assert.equal(list.text, '{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"t","inputSchema":{}}]}}');
    const call = '{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"t"}}';
    assert.equal(
      (await agent.exchange(call, headers)).text,
      '{"jsonrpc":"2.0","id":"c","result":{"content":[],"n":9007199254740993}}',
    );
  }
  assert.equal(server.count('tools/list'), 1);
  for (const { headers, session } of calls) {
    assert.equal(session, undefined);
    assert.equal(headers['mcp-protocol-version'], '2026-07-28');
    assert.equal(headers['mcp-method'], 'tools/call');
    assert.equal(headers['mcp-name'], 't');
  }
  // One each of the gateway's own and of those who came.
  assert.ok(server.count('server/discover') <= 2);
});

test('errors of the server and of the bridge come with status 200', async (t) => {
  const { bench } = await stand(t, {
    'tools/call': () => {
      throw new Refusal(-32021, 'no', { requiredCapabilities: { sampling: {} } });
    },
  });
  const agent = await bench.agent();
  for (const [method, params, code] of [
    ['vendor/x', '{}', -32601],
    ['tasks/get', '{}', -32601],
    ['logging/setLevel', '{"level":"loud"}', -32602],
    ['tools/call', '{"name":"t"}', -32602],
    ['tools/call', '{"name":"t","task":{}}', -32602],
  ] as const) {
    const { status, answer } = await agent.request(method, params);
    assert.deepEqual([status, answer.error?.code], [200, code], method);
  }
});

test('agents that use the same ids at the same time get their own questions, answers and progress', async (t) => {
  const waiting: (() => void)[] = [];
  const { bench } = await stand(t, {
    'tools/call': async (call) => {
      if (call.message.params.inputResponses === undefined) {
        await new Promise<void>((resolve) => {
          waiting.push(resolve);
          if (waiting.length === 2) for (const go of waiting.toReversed()) go();
        });
        const { progressToken } = call.message.params._meta;
        call.notify('notifications/progress', {
          progressToken,
          progress: 1,
          message: call.message.params.name,
        });
      }
      return askThenEcho(call);
    },
  });
  const agents = await Promise.all(
    ['ada', 'bob'].map((name) =>
      bench.agent({ capabilities: ALL, onAsk: () => ({ action: 'accept', content: { name } }) }),
    ),
  );
  const names = ['ada', 'bob'];
  const done = await Promise.all(
    agents.map((agent, at) => agent.call(names[at] as string, {}, { progressToken: 1 }, '1')),
  );
  for (const [at, name] of names.entries()) {
    const { answer, before } = done[at] as (typeof done)[number];
    assert.deepEqual(answer, {
      jsonrpc: '2.0',
      id: 1,
      result: {
        content: [],
        name,
        inputResponses: { who: { action: 'accept', content: { name } } },
        requestState: `for ${name}`,
      },
    });
    assert.deepEqual(
      before.map(({ method, params }) => [method, params.progressToken ?? params.message]),
      [
        ['notifications/progress', 1],
        ['elicitation/create', 'Who?'],
      ],
    );
  }
});

test('a cancelled call is not sent again, and a cancelled leg is ended at the server', async (t) => {
  let arrived!: (gone: AbortSignal) => void;
  const second = new Promise<AbortSignal>((resolve) => {
    arrived = resolve;
  });
  const { bench, server } = await stand(t, {
    'tools/call': async (call) => {
      if (call.message.params.inputResponses === undefined) return askThenEcho(call);
      arrived(call.gone);
      return await new Promise<string>(() => {});
    },
  });
  const cancel = (agent: RawAgent) => agent.notify('notifications/cancelled', { requestId: 1 });
  const silent: RawAgent = await bench.agent({ capabilities: ALL, onAsk: () => void cancel(silent) });
  const { before, text } = await silent.call('x', {}, undefined, '1');
  assert.equal(text, '');
  assert.equal(before[0]?.method, 'elicitation/create');
  assert.equal(server.count('tools/call'), 1);
  const agent = await bench.agent({ capabilities: ALL, onAsk: () => ({ action: 'accept' }) });
  const given = agent.call('x', {}, undefined, '1');
  const gone = await second;
  await cancel(agent);
  await given;
  if (!gone.aborted) await new Promise((resolve) => gone.addEventListener('abort', resolve));
});

test('a question of a cancelled call is withdrawn with its reason', async (t) => {
  const { server } = await stand(t, { 'tools/call': askThenEcho });
  const { agent } = stdioGateway(t, { servers: { one: remote(server.url) } });
  await greet(agent, ALL);
  await agent.say('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}');
  const { method, id } = await agent.hearWire();
  assert.equal(method, 'elicitation/create');
  await agent.say(
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"\\u0077hy"}}',
  );
  assert.equal(
    await agent.hear(),
    `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id},"reason":"\\u0077hy"}}`,
  );
  // It is heard no more, and the call is not answered either.
  await agent.say(`{"jsonrpc":"2.0","id":${id},"result":{"action":"accept"}}`);
  await agent.say('{"jsonrpc":"2.0","id":2,"method":"ping"}');
  assert.equal((await agent.hearWire()).id, 2);
  assert.equal(server.count('tools/call'), 1);
});

test('an agent that leaves in the middle of a question ends its call, and nothing is sent again', async (t) => {
  const { bench, server } = await stand(t, { 'tools/call': askThenEcho });
  const agent: RawAgent = await bench.agent({ capabilities: ALL, onAsk: () => void agent.leave() });
  await agent.call('x');
  assert.equal(server.count('tools/call'), 1);
});
