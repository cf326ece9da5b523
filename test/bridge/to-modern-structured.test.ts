import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LegacyOnModern } from '../support/legacy-on-modern.js';
import { ODD_OBJECTS } from '../support/odd-json.js';

const LIST = '{"resultType":"complete","tools":[';

/** A list of one tool with this schema of its results, as a server sends it. */
function listOf(schema: string, more = '', name = 't'): string {
  return `${LIST}{"name":"${name}","inputSchema":{"type":"object"},"outputSchema":${schema}}]${more}}`;
}

/** A server with that list, whose every call is answered with that structured content. */
function server(list: string, content: string): LegacyOnModern {
  return new LegacyOnModern(({ method }) =>
    method === 'tools/list'
      ? list
      : `{"resultType":"complete","content":[],"structuredContent":${content},"isError":false}`,
  );
}

/** The schema that agents are shown for one of a server. */
async function shown(schema: string): Promise<string> {
  const text = await server(listOf(schema), '{}').agent().request('tools/list');
  return text.slice(text.indexOf('"outputSchema":') + '"outputSchema":'.length, -'}]}}'.length);
}

/** The structured content that an agent gets, after it has listed the tools or not. */
async function content(list: string, value: string, lists = true): Promise<string> {
  const agent = server(list, value).agent();
  if (lists) await agent.request('tools/list');
  const text = await agent.request('tools/call', '{"name":"t"}');
  return text.slice(
    text.indexOf('"structuredContent":') + '"structuredContent":'.length,
    -',"isError":false}}'.length,
  );
}

test('a schema of objects stays as it is, and so does the list', async () => {
  const schema = '{ "type":"object","properties":{"a":{"$ref":"#\\/$defs\\/a"}},"$defs":{"a":true}}';
  assert.equal(await shown(schema), schema);
});

test('any other schema is wrapped in one of objects, in its own bytes', async () => {
  for (const schema of [
    '{"type":"array","items":{"minimum":1.0}}',
    '{ "anyOf" : [ {"type":"object"},{"type":"null"} ] }',
    '{"type":["object","null"],"x":9007199254740993}',
    '{}',
    ...Object.values(ODD_OBJECTS).filter((odd) => !odd.includes('_meta')),
  ])
    assert.equal(
      await shown(schema),
      `{"type":"object","properties":{"result":${schema}},"required":["result"]}`,
      schema.slice(0, 80),
    );
});

test('the dialect of a schema stands on its wrapping too', async () => {
  const schema = '{"$schema":"http:\\/\\/json-schema.org\\/draft-07\\/schema#","type":"string"}';
  assert.equal(
    await shown(schema),
    `{"$schema":"http:\\/\\/json-schema.org\\/draft-07\\/schema#","type":"object","properties":{"result":${schema}},"required":["result"]}`,
  );
});

test('a schema that is none stays', async () => {
  for (const schema of ['true', 'null', '"x"', '[]', '7']) assert.equal(await shown(schema), schema);
});

test('pointers within a wrapped schema find their targets', async () => {
  const place = '#/properties/result';
  for (const [schema, moved] of [
    ['{"$ref":"#"}', `{"$ref":"${place}"}`],
    ['{"items":[{"$ref":"#/$defs/a"}]}', `{"items":[{"$ref":"${place}/$defs/a"}]}`],
    ['{"$dynamicRef":"#\\/a"}', `{"$dynamicRef":"${place}/a"}`],
    ['{"a":{},"items":{"b":[],"$ref":"#/x"}}', `{"a":{},"items":{"b":[],"$ref":"${place}/x"}}`],
    ['{"properties":{"$ref":{"$ref":"#/a"}}}', `{"properties":{"$ref":{"$ref":"${place}/a"}}}`],
    ['{"properties":{"const":{"$ref":"#/a"}}}', `{"properties":{"const":{"$ref":"${place}/a"}}}`],
    ['{"$defs":{"$id":{"$ref":"#/a"}}}', `{"$defs":{"$id":{"$ref":"${place}/a"}}}`],
    ['{"items":{"$id":"#a","$ref":"#/b"}}', `{"items":{"$id":"#a","$ref":"${place}/b"}}`],
    ['{"dependencies":{"a":["$ref","#"]}}', '{"dependencies":{"a":["$ref","#"]}}'],
  ] as const)
    assert.equal(
      await shown(schema),
      `{"type":"object","properties":{"result":${moved}},"required":["result"]}`,
    );
});

test('what is no pointer into the schema itself stays', async () => {
  for (const schema of [
    '{"$ref":"#anchor"}',
    '{"$ref":"https://x/y#/a"}',
    '{"const":{"$ref":"#/a"},"enum":[{"$ref":"#"}],"default":{"$ref":"#"},"examples":[{"$ref":"#"}]}',
    '{"$id":"https://x/y","$ref":"#/a","items":{"$ref":"#"}}',
    '{"items":{"items":[{"$ref":"#/a"}],"$id":"https://x/y"}}',
    '{"description":"see #/a"}',
    '{"items":{"$ref":7}}',
  ])
    assert.equal(
      await shown(schema),
      `{"type":"object","properties":{"result":${schema}},"required":["result"]}`,
    );
});

test('a schema of any depth is read in linear time', async () => {
  const depth = 200_000;
  const schema = `{"x":${'{"items":['.repeat(depth)}{"$ref":"#"}${']}'.repeat(depth)}}`;
  assert.ok((await shown(schema)).includes('{"$ref":"#/properties/result"}'));
});

test('a value that is no object is wrapped whatever is known of its tool', async () => {
  const arrays = listOf('{"type":"array"}');
  for (const value of ['[1.0,9007199254740993]', '"\\u0061"', '7', 'null', 'false', '[]'])
    for (const lists of [true, false])
      assert.equal(await content(arrays, value, lists), `{"result":${value}}`);
});

test('an object is wrapped where the tool was listed with a schema of more than objects', async () => {
  const union = listOf('{"anyOf":[{"type":"object"},{"type":"null"}]}');
  assert.equal(await content(union, '{ "a":1.0 }'), '{"result":{ "a":1.0 }}');
  assert.equal(await content(union, '{ "a":1.0 }', false), '{ "a":1.0 }');
  assert.equal(await content(listOf('{"type":"object"}'), '{ "a":1.0 }'), '{ "a":1.0 }');
});

test('a later list counts, page by page', async () => {
  const bench = server(listOf('{}'), '{}');
  const agent = bench.agent();
  const call = () => agent.request('tools/call', '{"name":"t"}');
  const calling = bench.script;
  const relist = async (list: string) => {
    bench.script = (request, exchange) =>
      request.method === 'tools/list' ? list : calling(request, exchange);
    await agent.request('tools/list');
  };
  await relist(listOf('{}'));
  await relist(listOf('{}', '', 'other'));
  await relist(`${LIST}{"name":"third"}]}`);
  assert.match(await call(), /\{"result":\{\}\}/);
  await relist(listOf('{"type":"object"}'));
  assert.doesNotMatch(await call(), /\{"result":\{\}\}/);
  await relist(listOf('{}'));
  await relist(`${LIST}{"name":"t"}]}`);
  assert.doesNotMatch(await call(), /\{"result":\{\}\}/);
});

test('what one caller’s list says does not change another’s results', async () => {
  const bench = server('', '{}');
  bench.partitionOf = (serverId, _, { tokenHash }) => `${serverId}#${tokenHash}`;
  const answers = bench.script;
  bench.script = (request, exchange) =>
    request.method === 'tools/list'
      ? listOf(exchange.caller.token === 'A' ? '{}' : '{"type":"object"}')
      : answers(request, exchange);
  const [ada, bob, eve] = ['A', 'B', 'C'].map((token) => bench.agent({ id: token, token }));
  for (const agent of [ada, bob]) await agent?.request('tools/list');
  const wrapped = [];
  for (const agent of [ada, bob, eve])
    wrapped.push((await agent?.request('tools/call', '{"name":"t"}'))?.includes('{"result":{}}'));
  assert.deepEqual(wrapped, [true, false, false]);
});

test('of a caller’s own list and one for everybody the newer counts', async () => {
  const bench = server('', '{}');
  bench.partitionOf = (serverId, _, { tokenHash }) => `${serverId}#${tokenHash}`;
  const answers = bench.script;
  const [ada, bob] = ['A', 'B'].map((token) => bench.agent({ id: token, token }));
  const list = async (agent: typeof ada, schema: string, scope: string) => {
    bench.script = (request, exchange) =>
      request.method === 'tools/list'
        ? listOf(schema, `,"cacheScope":"${scope}"`)
        : answers(request, exchange);
    await agent?.request('tools/list');
  };
  const isWrapped = async () => (await bob?.request('tools/call', '{"name":"t"}'))?.includes('{"result":{}}');
  await list(ada, '{}', 'public');
  assert.equal(await isWrapped(), true);
  await list(bob, '{"type":"object"}', 'private');
  assert.equal(await isWrapped(), false);
  await list(ada, '{}', 'public');
  assert.equal(await isWrapped(), true);
});

test('a list without tools, and one whose items are none, pass', async () => {
  for (const list of ['{"resultType":"complete"}', `${LIST}7,null,{"outputSchema":{"type":"object"}}]}`]) {
    const text = await server(list, '{}').agent().request('tools/list');
    assert.equal(
      text,
      `{"jsonrpc":"2.0","id":1,"result":{${list.slice('{"resultType":"complete"'.length).replace(/^,/, '')}}`,
    );
  }
});
