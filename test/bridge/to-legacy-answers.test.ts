import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PATIENCE } from '../support/forwarding.js';
import { Refusal } from '../support/mcp-server.js';
import { ALL, modernOnLegacy, told } from '../support/modern-on-legacy.js';
import { modernMeta } from '../support/modern-text.js';

const PREFIX = 'io.modelcontextprotocol/';

/** What `_meta` must hold, without the brace that closes it. */
const META = JSON.stringify(modernMeta({ ...ALL, logLevel: 'error' })).slice(0, -1);

test('of a request only the envelope is taken off, and every other byte arrives', PATIENCE, async (t) => {
  let raw = '';
  const bench = await modernOnLegacy(t, {
    call: (call) => {
      raw = call.raw;
      return told('done');
    },
  });
  const args = '{ "n":9007199254740993, "e":1E400,"t":"\\u0061\\/", "z": -0 , "__proto__":{"a":1}}';
  const body = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask",${'"arguments"'}:${args},"_meta":${META},"traceparent":"00-1","x": [1 ,2]},"vendor/a":1.50},"extra":true}`;
  await bench.post('tools/call', { name: 'ask' }, { body });
  const params = raw.slice(raw.indexOf('"params":') + '"params":'.length, -1);
  assert.equal(
    params,
    `{"name":"ask","arguments":${args},"_meta":{"traceparent":"00-1","x": [1 ,2]},"vendor/a":1.50},"extra":true`,
  );
});

test('an envelope that was all of `_meta` leaves it empty', PATIENCE, async (t) => {
  const seen: unknown[] = [];
  const bench = await modernOnLegacy(t, {
    on: {
      'prompts/get': ({ message }) => {
        seen.push(message.params);
        return '{"messages":[]}';
      },
    },
  });
  await bench.send('prompts/get', { name: 'p' }, { declaration: {} });
  await bench.send('prompts/get', { name: 'p', inputResponses: { a: {} } }, { declaration: {} });
  assert.deepEqual(seen, [
    { _meta: {}, name: 'p' },
    { _meta: {}, name: 'p' },
  ]);
});

test(
  'a call does not become a task because of a member that has no meaning any more',
  PATIENCE,
  async (t) => {
    const bench = await modernOnLegacy(t, { call: ({ message }) => told(Object.keys(message.params)) });
    const { result } = await bench.call({ params: { task: { ttl: 1 } } });
    assert.equal(result.content[0].text, '["_meta","name","arguments"]');
  },
);

test('results say that they are complete, in front of the server’s own bytes', PATIENCE, async (t) => {
  const results = ['{"content":[], "big":9007199254740993}', '{}', '{"resultType":"odd","a":1}'];
  const bench = await modernOnLegacy(t, {
    call: ({ message }) => results[message.params.arguments.n] as string,
  });
  const texts: string[] = [];
  for (const n of results.keys()) {
    const answer = await bench.post('tools/call', { name: 'ask', arguments: { n } }, { id: '"x"' });
    texts.push(await answer.text());
  }
  assert.deepEqual(
    texts.map((text) => text.slice(text.indexOf('"result":') + '"result":'.length, -1)),
    [
      '{"resultType":"complete","content":[], "big":9007199254740993}',
      '{"resultType":"complete"}',
      '{"resultType":"odd","a":1}',
    ],
  );
});

test(
  'codes that went out of use, or that are kept for other meanings now, are replaced',
  PATIENCE,
  async (t) => {
    const data = { uri: 'a:b', n: 1 };
    const bench = await modernOnLegacy(t, {
      call: ({ message }) => {
        throw new Refusal(message.params.arguments.code, 'why', data);
      },
    });
    const codes = [-32002, -32042, -32020, -32050, -32099, -32100, -32001, -32000, -32602, 404];
    const got: unknown[] = [];
    for (const code of codes) {
      const answer = await bench.post('tools/call', { name: 'ask', arguments: { code } });
      const { error } = await answer.json();
      assert.deepEqual([error?.message, error?.data, answer.status], ['why', data, 200], String(code));
      got.push(error?.code);
    }
    assert.deepEqual(got, [
      ...[-32602, -32603, -32603, -32603, -32603],
      ...[-32100, -32001, -32000, -32602, 404],
    ]);
  },
);

test('methods that went out of use are answered without the server', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t);
  for (const method of [
    'initialize',
    'ping',
    'logging/setLevel',
    'resources/subscribe',
    'resources/unsubscribe',
    'tasks/list',
    'tasks/result',
  ]) {
    const answer = await bench.post(method, { uri: 'a:b', level: 'info' });
    const { error } = await answer.json();
    assert.deepEqual([answer.status, error?.code], [404, -32601], method);
  }
  assert.deepEqual(
    ['ping', 'logging/setLevel', 'resources/subscribe', 'tasks/list'].map((one) => bench.server.count(one)),
    [0, 0, 0, 0],
  );
});

test('a method that the server does not know is none of the gateway’s either', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t, { on: { 'vendor/known': () => '{"a":1}' } });
  const answer = await bench.post('vendor/unknown');
  assert.equal(answer.status, 404);
  assert.equal((await answer.json()).error?.code, -32601);
  assert.deepEqual((await bench.send('vendor/known')).result, { resultType: 'complete', a: 1 });
});

test('discovery tells what the server said when it was initialized', PATIENCE, async (t) => {
  const capabilities = {
    tools: { listChanged: true },
    tasks: { list: {} },
    experimental: { big: 1 },
    extensions: { 'a/b': {} },
  };
  const bench = await modernOnLegacy(t, { capabilities });
  const { result } = await bench.send('server/discover');
  const { tasks, ...rest } = capabilities;
  assert.deepEqual(result.capabilities, rest);
  assert.deepEqual(result.supportedVersions, ['2026-07-28']);
  assert.deepEqual(result._meta, { [`${PREFIX}serverInfo`]: { name: 'scripted', version: '1' } });
  assert.equal(result.resultType, 'complete');
  assert.ok(result.ttlMs >= 0 && ['public', 'private'].includes(result.cacheScope));
});

test(
  'a legacy server sees the agent’s own capabilities and name, once for all its requests',
  PATIENCE,
  async (t) => {
    const bench = await modernOnLegacy(t, { on: { 'prompts/list': () => '{"prompts":[]}' } });
    const declaration = { capabilities: { sampling: {}, extensions: { 'a/b': { n: 1 } } } };
    await bench.send('prompts/list', {}, { declaration });
    await bench.send('tools/list', {}, { declaration });
    const declared = bench.server.initialized.map(({ params }) => params.capabilities);
    assert.deepEqual(declared.at(-1), declaration.capabilities);
    assert.equal(declared.filter((one) => JSON.stringify(one) === JSON.stringify(declared.at(-1))).length, 1);
  },
);

test('params and answers that name a member twice fail alone, each at who sent them', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t, { call: () => '{"resultType":"a","resultType":"b"}' });
  const twice = await bench.send('tools/call', { name: 'ask' });
  assert.equal(twice.error?.code, -32603);
  assert.match(twice.error?.message ?? '', /"one" answered what cannot be understood/);
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","_meta":${META}},"requestState":"a","requestState":"b"}}`;
  const refused = await (await bench.post('tools/call', { name: 'ask' }, { body })).json();
  assert.deepEqual([refused.error?.code, bench.server.count('tools/call')], [-32602, 1]);
});
