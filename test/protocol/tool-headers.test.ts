import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import fc from 'fast-check';
import {
  type HeaderPlan,
  headerMismatch,
  headerPlanOf,
  mirroredHeaders,
} from '../../src/protocol/tool-headers.js';
import { readMessage } from '../../src/wire/message.js';

const SCHEMA = {
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    limit: { type: 'integer', 'x-mcp-header': 'Limit' },
    dry: { type: 'boolean', 'x-mcp-header': 'Dry-Run' },
    where: {
      type: 'object',
      properties: { tenant: { type: 'string', 'x-mcp-header': 'Tenant' }, other: { type: 'string' } },
    },
    query: { type: 'string' },
  },
} as const;

function planOf(schema: unknown): HeaderPlan {
  const read = headerPlanOf(schema);
  if ('invalid' in read) throw new Error(read.invalid);
  return read.plan;
}

function callOf(args: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":${args}}}`;
}

/** The headers of a call whose arguments are this JSON text. */
function headersFor(args: string, plan = planOf(SCHEMA)): Record<string, string> {
  const { bytes, params } = readMessage(Buffer.from(callOf(args)));
  return mirroredHeaders(plan, bytes, params);
}

function complaint(
  args: string,
  headers: Readonly<Record<string, string>>,
  plan = planOf(SCHEMA),
): string | undefined {
  const { bytes, params } = readMessage(Buffer.from(callOf(args)));
  return headerMismatch(plan, bytes, params, (name) => headers[name]);
}

/** A schema whose one annotation is at `path` of keywords and names. */
function annotatedAt(path: readonly string[], annotation: unknown = 'A', type: unknown = 'string'): unknown {
  return path.reduceRight<unknown>((inner, step) => (step === '[]' ? [inner] : { [step]: inner }), {
    type,
    'x-mcp-header': annotation,
  });
}

test('the annotated properties of a schema make its plan, at any depth', () => {
  assert.deepEqual(planOf(SCHEMA), [
    { header: 'Mcp-Param-Region', path: ['region'], type: 'string' },
    { header: 'Mcp-Param-Limit', path: ['limit'], type: 'integer' },
    { header: 'Mcp-Param-Dry-Run', path: ['dry'], type: 'boolean' },
    { header: 'Mcp-Param-Tenant', path: ['where', 'tenant'], type: 'string' },
  ]);
  const deep = Array.from({ length: 64 }, () => ['properties', 'a']).flat();
  assert.equal(planOf(annotatedAt(deep))[0]?.path.length, 64);
});

test('a schema without annotations has an empty plan, whatever it is', () => {
  for (const schema of [undefined, null, true, 'x', [], {}, { type: 'object' }, { properties: [1, null] }])
    assert.deepEqual(planOf(schema), []);
});

test('the name of the annotation may be that of a property, and stand in data', () => {
  const named = { properties: { 'x-mcp-header': { type: 'string' }, default: { type: 'string' } } };
  assert.deepEqual(planOf(named), []);
  const data = annotatedAt([], 'not a name', 'object');
  for (const keyword of ['default', 'const', 'examples', 'enum', 'x-vendor'])
    assert.deepEqual(planOf({ properties: { a: { [keyword]: [data] } } }), []);
  const odd = { properties: { default: { type: 'string', 'x-mcp-header': 'A' } } };
  assert.deepEqual(planOf(odd)[0]?.path, ['default']);
});

test('an annotation that `properties` alone do not lead to makes the tool invalid', () => {
  const places = [
    [],
    ['items'],
    ['properties', 'a', 'items'],
    ['properties', 'a', 'items', 'properties', 'b'],
    ['properties', 'a', 'oneOf', '[]'],
    ['anyOf', '[]', 'properties', 'a'],
    ['allOf', '[]', 'properties', 'a'],
    ['not', 'properties', 'a'],
    ['if', 'properties', 'a'],
    ['then', 'properties', 'a'],
    ['else', 'properties', 'a'],
    ['$defs', 'a'],
    ['definitions', 'a', 'properties', 'b'],
    ['additionalProperties'],
    ['unevaluatedProperties'],
    ['patternProperties', '.*'],
    ['propertyNames'],
    ['dependentSchemas', 'a'],
    ['dependencies', 'enum'],
    ['prefixItems', '[]'],
    ['additionalItems'],
    ['contains'],
  ];
  for (const place of places) {
    const read = headerPlanOf(annotatedAt(place));
    assert.ok('invalid' in read && /is not on a property of the arguments/.test(read.invalid), `${place}`);
  }
});

test('an annotation that is no header name, or on another type, makes the tool invalid', () => {
  const at = ['properties', 'a'];
  for (const name of ['', 'a b', 'a:b', 'a\r\nb', 'é', '(a)', 'a\u0000', 'a'.repeat(257), 1, null, {}, ['a']])
    assert.match(invalid(annotatedAt(at, name)), /x-mcp-header of a is no header name/);
  for (const type of ['number', 'object', 'array', 'null', ['string', 'null'], 'String'])
    assert.match(
      invalid(annotatedAt(at, 'A', type)),
      /x-mcp-header of a is on a type that no header mirrors/,
    );
  assert.match(invalid({ properties: { a: { 'x-mcp-header': 'A' } } }), /on a type that no header mirrors/);
  const twice = { a: { type: 'string', 'x-mcp-header': 'A' }, b: { type: 'string', 'x-mcp-header': 'a' } };
  assert.match(invalid({ properties: twice }), /two properties are mirrored in Mcp-Param-a/);
  const tooDeep = Array.from({ length: 65 }, () => ['properties', 'a']).flat();
  assert.match(invalid(annotatedAt(tooDeep)), /more than 64 steps deep/);
});

function invalid(schema: unknown): string {
  const read = headerPlanOf(schema);
  return 'invalid' in read ? read.invalid : assert.fail(JSON.stringify(schema));
}

test('depth costs neither the stack nor more than its own length', () => {
  let schema: unknown = { type: 'string', 'x-mcp-header': 'A' };
  for (let i = 0; i < 100_000; i++) schema = { properties: { a: schema } };
  assert.match(invalid(schema), /more than 64 steps deep/);
  let bare: unknown = {};
  for (let i = 0; i < 100_000; i++) bare = { anyOf: [bare] };
  assert.deepEqual(planOf(bare), []);
});

test('arguments are mirrored by the text of their values', () => {
  const args =
    '{"query":"q","region":"us-west1","limit":42,"dry":false,"where":{"other":"o","tenant":" Ä "}}';
  assert.deepEqual(headersFor(args), {
    'mcp-param-region': 'us-west1',
    'mcp-param-limit': '42',
    'mcp-param-dry-run': 'false',
    'mcp-param-tenant': '=?base64?IMOEIA==?=',
  });
  assert.deepEqual(headersFor('{"\\u0072egion":"\\u0061\\n"}'), { 'mcp-param-region': '=?base64?YQo=?=' });
  assert.deepEqual(headersFor('{"region":""}'), { 'mcp-param-region': '=?base64??=' });
});

test('an integer keeps its digits, however it is spelled and however large it is', () => {
  const texts = {
    '42.0': '42',
    '42.000': '42',
    '-7': '-7',
    '-0': '0',
    '1e3': '1000',
    '12.5e1': '125',
    '9007199254740991': '9007199254740991',
    '9007199254740993': '9007199254740993',
    '-123456789012345678901234567890': '-123456789012345678901234567890',
    '1.50': '1.5',
  };
  for (const [json, text] of Object.entries(texts))
    assert.deepEqual(headersFor(`{"limit":${json}}`), { 'mcp-param-limit': text }, json);
  for (const json of ['1e400', '1e30']) assert.deepEqual(headersFor(`{"limit":${json}}`), {}, json);
});

test('what is absent, null or no primitive is mirrored by nothing', () => {
  const nothing = ['{}', '[]', '"region"', 'null', '{"region":null}', '{"region":{"a":1},"limit":[1]}'];
  for (const args of [...nothing, '{"where":null}', '{"where":"tenant"}', '{"where":[{"tenant":"a"}]}'])
    assert.deepEqual(headersFor(args), {}, args);
  const { bytes, params } = readMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call"}'));
  assert.deepEqual(mirroredHeaders(planOf(SCHEMA), bytes, params), {});
});

test('an argument of another type than its schema wants is mirrored by its own', () => {
  assert.deepEqual(headersFor('{"limit":"42","region":7,"dry":"yes"}'), {
    'mcp-param-limit': '42',
    'mcp-param-region': '7',
    'mcp-param-dry-run': 'yes',
  });
});

test('an argument that is given twice is mirrored by nothing and refused', () => {
  for (const args of [
    '{"region":"a","region":"b"}',
    '{"region":"a","\\u0072egion":"b"}',
    '{"where":{"tenant":"a"},"where":{"tenant":"b"}}',
    '{"where":{"tenant":"a","tenant":"a"}}',
  ]) {
    assert.deepEqual(headersFor(args), {}, args);
    assert.match(complaint(args, { 'mcp-param-region': 'a' }) ?? '', /given twice/, args);
  }
  assert.deepEqual(headersFor('{"query":1,"query":2,"region":"a"}'), { 'mcp-param-region': 'a' });
});

test('the name of an object prototype is an argument like any other', () => {
  const properties = JSON.parse('{"__proto__":{"type":"string","x-mcp-header":"P"},"constructor":{}}');
  const plan = planOf({ properties });
  assert.deepEqual(headersFor('{"__proto__":"x"}', plan), { 'mcp-param-p': 'x' });
  assert.deepEqual(headersFor('{}', plan), {});
});

test('headers that mirror their arguments are taken', () => {
  assert.equal(
    complaint('{"region":"a","limit":1}', { 'mcp-param-region': 'a', 'mcp-param-limit': '1' }),
    undefined,
  );
  assert.equal(complaint('{"region":"a"}', { 'mcp-param-region': '=?base64?YQ==?=' }), undefined);
  assert.equal(complaint('{"region":"\\ud800"}', { 'mcp-param-region': '=?base64?77+9?=' }), undefined);
  assert.equal(complaint('{"region":null}', {}), undefined);
  assert.equal(complaint('{}', { 'mcp-param-unknown': 'x' }), undefined);
  assert.equal(complaint('{}', {}, []), undefined);
});

test('integers are compared as numbers, exactly', () => {
  const sameLimit = (json: string, header: string) =>
    complaint(`{"limit":${json}}`, { 'mcp-param-limit': header }) === undefined;
  const same = [
    ['42', '42.0'],
    ['42.0', '42'],
    ['1e3', '1000'],
    ['42', '042'],
    ['0', '-0'],
    ['1.5', '1.50'],
    ['9007199254740993', '9007199254740993'],
  ];
  const others = [
    ['42', '42.5'],
    ['42', '4.2e1'],
    ['42', '0x2a'],
    ['42', ' 42'],
    ['42', '=?base64?NDM=?='],
    ['9007199254740993', '9007199254740992'],
    ['1e3', '100'],
    ['-1', '1'],
    ['"42"', '42.0'],
  ];
  for (const [json, header] of same)
    assert.ok(sameLimit(json as string, header as string), `${json} ${header}`);
  for (const [json, header] of others)
    assert.ok(!sameLimit(json as string, header as string), `${json} ${header}`);
});

test('an integer that JavaScript would round may come without its header', () => {
  assert.equal(complaint('{"limit":9007199254740993}', {}), undefined);
  assert.match(complaint('{"limit":9007199254740991}', {}) ?? '', /is missing/);
});

test('a header that says something else is refused, by a sentence without its value', () => {
  const secret = 's3cret';
  const cases: [string, Record<string, string>, RegExp][] = [
    [`{"region":"${secret}"}`, {}, /^The header Mcp-Param-Region is missing for argument region$/],
    [`{"region":"${secret}"}`, { 'mcp-param-region': 'S3cret' }, /Mcp-Param-Region differs from argument/],
    ['{}', { 'mcp-param-region': secret }, /Mcp-Param-Region is there without argument region$/],
    ['{"region":null}', { 'mcp-param-region': secret }, /is there without argument region$/],
    ['{"where":{}}', { 'mcp-param-tenant': secret }, /is there without argument where\.tenant$/],
    ['{"region":"a"}', { 'mcp-param-region': '=?base64?YQ?=' }, /Mcp-Param-Region cannot be decoded$/],
    ['{"region":"é"}', { 'mcp-param-region': 'é' }, /Mcp-Param-Region cannot be decoded$/],
    ['{"region":"a"}', { 'mcp-param-region': 'a, a' }, /differs/],
    ['{"dry":true}', { 'mcp-param-dry-run': 'True' }, /differs/],
  ];
  for (const [args, headers, sentence] of cases) {
    const said = complaint(args, headers) ?? '';
    assert.match(said, sentence);
    assert.ok(!said.toLowerCase().includes(secret), said);
  }
});

test('many mirrored arguments cost one reading of the call', () => {
  const names = Array.from({ length: 2_000 }, (_, i) => `a${i}`);
  const plan = planOf({
    properties: Object.fromEntries(names.map((name) => [name, { type: 'string', 'x-mcp-header': name }])),
  });
  const filling = `"filling":"${'x'.repeat(1_000_000)}"`;
  const args = `{${filling},${names.map((name) => `"${name}":"v"`).join()}}`;
  const headers = headersFor(args, plan);
  assert.equal(Object.keys(headers).length, names.length);
  assert.equal(complaint(args, headers, plan), undefined);
});

/** The official client in front of the official server, both in this process, with the tool of `SCHEMA`. */
async function officialPair() {
  const sent: Headers[] = [];
  const bodies: string[] = [];
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: 's', version: '1' });
      server.registerTool('t', { inputSchema: fromJsonSchema(SCHEMA) }, () => ({ content: [] }));
      return server;
    },
    { legacy: 'reject' },
  );
  const url = new URL('http://localhost/mcp');
  const transport = new StreamableHTTPClientTransport(url, {
    fetch: async (input, init) => {
      const request = new Request(input, init);
      if (request.headers.get('mcp-method') === 'tools/call') {
        sent.push(request.headers);
        bodies.push(await request.clone().text());
      }
      return await handler.fetch(request);
    },
  });
  const client = new Client(
    { name: 'c', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  await client.connect(transport);
  await client.listTools();
  const last = () => ({ headers: sent.at(-1) as Headers, body: bodies.at(-1) as string });
  return { client, handler, url, last };
}

const official = await officialPair();
after(() => Promise.all([official.client.close(), official.handler.close()]));

const region = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(' a', '', '=?base64?=', 'é', 'a\nb'),
);
const someArguments = fc.record(
  {
    region: fc.oneof(region, fc.constant(null)),
    limit: fc.maxSafeInteger(),
    dry: fc.boolean(),
    where: fc.record({ tenant: region }, { requiredKeys: [] }),
  },
  { requiredKeys: [] },
);

/** The official decoder drops it. */
const MARK_OF_ORDER = '\ufeff';

test('the official client mirrors as we do, and what it sends is taken', async () => {
  await fc.assert(
    fc.asyncProperty(someArguments, async (args) => {
      await official.client.callTool({ name: 't', arguments: args }).catch(() => {});
      const { headers, body } = official.last();
      const { bytes, params } = readMessage(Buffer.from(body));
      const theirs = [...headers].filter(([name]) => name.startsWith('mcp-param-'));
      assert.deepEqual(mirroredHeaders(planOf(SCHEMA), bytes, params), Object.fromEntries(theirs));
      const lookUp = (name: string) => headers.get(name) ?? undefined;
      assert.equal(headerMismatch(planOf(SCHEMA), bytes, params, lookUp), undefined);
    }),
    { numRuns: 100 },
  );
});

test('the official server takes what we mirror, and refuses what we refuse', async () => {
  const given = fc.record({ args: someArguments, wrong: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(given, async ({ args, wrong }) => {
      const text = JSON.stringify(args);
      fc.pre(!text.includes(MARK_OF_ORDER));
      const meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
      };
      const body = callOf(text).replace('"name"', `"_meta":${JSON.stringify(meta)},"name"`);
      const { bytes, params } = readMessage(Buffer.from(body));
      const mirrored = mirroredHeaders(planOf(SCHEMA), bytes, params);
      if (wrong && mirrored['mcp-param-limit']) mirrored['mcp-param-limit'] += '1';
      const refused = headerMismatch(planOf(SCHEMA), bytes, params, (name) => mirrored[name]);
      const answer = await official.handler.fetch(
        new Request(official.url, { method: 'POST', body, headers: { ...STANDARD, ...mirrored } }),
      );
      const { error } = (await answer.json()) as { error?: { code: number } };
      assert.equal(error?.code === -32020, refused !== undefined, `${refused} ${JSON.stringify(error)}`);
    }),
    { numRuns: 100 },
  );
});

const STANDARD = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': 'tools/call',
  'mcp-name': 't',
};
