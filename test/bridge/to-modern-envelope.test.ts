import assert from 'node:assert/strict';
import { test } from 'node:test';
import { notification } from '../../src/protocol/compose.js';
import { LEGACY_REVISIONS } from '../../src/protocol/revisions.js';
import { DONE, LegacyOnModern, PREFIX, said, textOf, wire } from '../support/legacy-on-modern.js';
import { ODD_IDS, ODD_OBJECTS } from '../support/odd-json.js';

const VERSION = `"${PREFIX}protocolVersion":"2026-07-28"`;
const META = `${VERSION},"${PREFIX}clientInfo":{"name":"old","version":"1"},"${PREFIX}clientCapabilities":{}`;
const LOGGING = '{"resultType":"complete","capabilities":{"logging":{}}}';

/** A server that logs, and answers every call the same. */
function logger(): LegacyOnModern {
  return new LegacyOnModern(({ method }) => (method === 'server/discover' ? LOGGING : DONE));
}

/** What came to the server of one request. */
async function sent(params: string | undefined, id = '1'): Promise<string> {
  const bench = new LegacyOnModern(() => DONE);
  await bench.agent().request('x/y', params, id);
  return textOf(bench.sent[0]);
}

test('params get the envelope, and every other byte stays', async () => {
  for (const [what, odd] of Object.entries(ODD_OBJECTS)) {
    // The reserved member that this one has is looked at elsewhere.
    if (odd.includes('_meta')) continue;
    const more = odd.slice(1).trimStart().startsWith('}') ? '' : ',';
    assert.equal(
      await sent(odd),
      `{"jsonrpc":"2.0","id":1,"method":"x/y","params":{"_meta":{${META}}${more}${odd.slice(1)}}`,
      what,
    );
  }
});

test('a `_meta` that is there keeps what the revision does not reserve', async () => {
  const meta = '{ "progressToken":1.0 , "vendor/x":[9007199254740993] }';
  assert.equal(
    await sent(`{"name":"n","_meta":${meta},"arguments":{"_meta":{"deep":1}}}`),
    `{"jsonrpc":"2.0","id":1,"method":"x/y","params":{"name":"n","_meta":{${META},${meta.slice(1)},"arguments":{"_meta":{"deep":1}}}}`,
  );
  assert.equal(
    await sent('{"_meta":{}}'),
    `{"jsonrpc":"2.0","id":1,"method":"x/y","params":{"_meta":{${META}}}}`,
  );
});

test('a request without params gets some', async () => {
  assert.equal(await sent(undefined), `{"params":{"_meta":{${META}}},"jsonrpc":"2.0","id":1,"method":"x/y"}`);
});

test('an id keeps its spelling through every answer', async () => {
  for (const id of ODD_IDS) {
    const bench = new LegacyOnModern(() => DONE);
    assert.equal(
      await bench.agent().request('x/y', '{}', id),
      `{"jsonrpc":"2.0","id":${id},"result":{"content":[]}}`,
    );
  }
});

test('params and `_meta` that are no objects are refused before anything is sent', async () => {
  const bench = new LegacyOnModern(() => DONE);
  for (const params of ['[1,2]', '[]', '{"_meta":null}', '{"_meta":"x"}', '{"_meta":{},"_meta":{}}'])
    await assert.rejects(bench.agent().request('x/y', params), { code: 'invalid_params' }, params);
  assert.equal(bench.sent.length, 0);
});

test('reserved members that an agent sends itself are the gateway’s', async () => {
  const bench = new LegacyOnModern(() => DONE);
  const own = [
    'protocolVersion":"1"',
    'clientInfo":7',
    'clientCapabilities":{"roots":{}}',
    'logLevel":"debug"',
  ];
  const params = `{"_meta":{${own.map((member) => `"${PREFIX}${member}`).join(',')},"a":1}}`;
  await bench.agent().request('x/y', params);
  assert.deepEqual(wire(bench.sent[0]).params._meta, {
    ...JSON.parse(`{${META}}`),
    a: 1,
  });
  const disguised = params.replaceAll('io.model', '\\u0069o.model');
  await bench.agent().request('x/y', disguised);
  assert.deepEqual(wire(bench.sent[1]), wire(bench.sent[0]));
  await bench.agent({ clientInfo: '' }).request('x/y', params);
  assert.deepEqual(Object.keys(wire(bench.sent[2]).params._meta), [
    `${PREFIX}protocolVersion`,
    `${PREFIX}clientCapabilities`,
    'a',
  ]);
});

test('what an agent declared is said with each request in its own bytes, but for tasks', async () => {
  const bench = new LegacyOnModern(() => DONE);
  const clientInfo = '{ "name":"\\u0061","x":1.0 }';
  const capabilities =
    '{"roots":{ },"tasks":{"list":{}},"x":9007199254740993,"extensions":{"io.modelcontextprotocol/tasks":{},"a/b":{}}}';
  const agent = bench.agent({ clientInfo, capabilities });
  for (const _ of ['first', 'second']) await agent.request('x/y');
  for (const exchange of bench.sent) {
    assert.ok(textOf(exchange).includes(`${PREFIX}clientInfo":${clientInfo}`));
    assert.ok(
      textOf(exchange).includes(
        `${PREFIX}clientCapabilities":{"roots":{ },"x":9007199254740993,"extensions":{"a/b":{}}}`,
      ),
    );
    assert.equal(exchange.era, 'modern');
    assert.deepEqual(exchange.agent.profile, { ...agent.profile, revision: '2026-07-28' });
  }
});

test('agents of every revision are spoken for in the same way', async () => {
  for (const revision of LEGACY_REVISIONS) {
    const bench = new LegacyOnModern(() => DONE);
    await bench.agent({ revision }).request('x/y', '{}');
    assert.equal(said(bench.sent[0], 'protocolVersion'), '2026-07-28');
  }
});

test('a level is remembered for its agent alone and said with each request', async () => {
  const bench = logger();
  const [ada, bob] = [bench.agent({ id: 'ada' }), bench.agent({ id: 'bob' })];
  assert.equal(
    await ada.request('logging/setLevel', '{"level":"warning"}', '"s"'),
    '{"jsonrpc":"2.0","id":"s","result":{}}',
  );
  await ada.request('tools/call', '{"name":"x"}');
  await bob.request('tools/call', '{"name":"x"}');
  assert.deepEqual(
    bench.sent.map((exchange) => said(exchange, 'logLevel')),
    [undefined, 'warning', undefined],
  );
  await ada.request('logging/setLevel', '{"level":"debug"}');
  await ada.request('tools/call', '{"name":"x"}');
  assert.equal(said(bench.sent.at(-1), 'logLevel'), 'debug');
});

test('a level that is none is refused', async () => {
  for (const params of [
    '{"level":"loud"}',
    '{"level":1}',
    '{}',
    undefined,
    '{"level":"info","level":"debug"}',
  ])
    await assert.rejects(logger().agent().request('logging/setLevel', params), { code: 'invalid_params' });
});

test('there is no level on a server that does not log', async () => {
  const bench = new LegacyOnModern(() => '{"resultType":"complete","capabilities":{"tools":{}}}');
  const { error } = JSON.parse(await bench.agent().request('logging/setLevel', '{"level":"info"}'));
  assert.equal(error.code, -32601);
  assert.match(error.message, /"one"/);
});

test('an agent hears what its server logs from its level on, and progress as it comes', async () => {
  const bench = logger();
  const agent = bench.agent();
  await agent.request('logging/setLevel', '{"level":"warning"}');
  bench.script = (_, exchange) => {
    for (const level of ['debug', 'warning', 'notice', 'emergency'])
      exchange.notify(notification('notifications/message', { level, data: level }));
    exchange.notify(notification('notifications/message', { level: 'loud', data: 1 }));
    exchange.notify(notification('notifications/progress', { progressToken: 7, progress: 1 }));
    return DONE;
  };
  await agent.request('tools/call', '{"name":"x"}');
  assert.deepEqual(
    agent.heard.map(({ params }) => params.level ?? params.progressToken),
    ['warning', 'emergency', 7],
  );
});

test('an agent that never set a level hears what its server sends', async () => {
  const bench = new LegacyOnModern((_, exchange) => {
    exchange.notify(notification('notifications/message', { level: 'debug', data: 1 }));
    return DONE;
  });
  const agent = bench.agent();
  await agent.request('tools/call', '{"name":"x"}');
  assert.equal(agent.heard.length, 1);
});

test('an agent that has gone is forgotten, also when its level comes late', async () => {
  const bench = logger();
  const agent = bench.agent();
  await agent.request('logging/setLevel', '{"level":"info"}');
  bench.bridge.leave(agent);
  await agent.request('tools/call', '{"name":"x"}');
  assert.equal(said(bench.sent.at(-1), 'logLevel'), undefined);
  const aborter = new AbortController();
  bench.clock.advance(60_000);
  bench.script = () => {
    aborter.abort();
    return LOGGING;
  };
  const late = agent.request('logging/setLevel', '{"level":"info"}', '1', aborter.signal);
  await assert.rejects(late, { code: 'cancelled' });
  bench.script = () => DONE;
  await agent.request('tools/call', '{"name":"x"}');
  assert.equal(said(bench.sent.at(-1), 'logLevel'), undefined);
});
