import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answered, modernListener, PLAIN, type Post } from '../support/modern-listener.js';
import { modernMeta, modernText } from '../support/modern-text.js';

const META = modernMeta();
const call = (more: Partial<Post> = {}): Post => ({
  method: 'tools/call',
  params: { name: 'echo', arguments: {} },
  ...more,
});

/** What is refused: why, what was sent, and the status and code of the answer. */
const REFUSED: readonly (readonly [why: string, post: Post, status: number, code: number])[] = [
  ['no JSON', { body: '{"jsonrpc":"2.0",' }, 400, -32700],
  ['a batch', { body: `[${modernText('tools/list', '1')}]` }, 400, -32600],
  ['a response', { body: '{"jsonrpc":"2.0","id":1,"result":{}}' }, 400, -32600],
  ['a null id', { body: modernText('tools/list', 'null') }, 400, -32600],
  ['an object as id', { body: modernText('tools/list', '{}') }, 400, -32600],
  ['no _meta', { body: '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}' }, 400, -32602],
  ['no params', { body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' }, 400, -32602],
  ['no revision', { declaration: { revision: undefined } }, 400, -32602],
  ['a number as revision', { declaration: { revision: 20260728 } }, 400, -32602],
  ['null as revision', { declaration: { revision: null } }, 400, -32602],
  ['no capabilities', { declaration: { capabilities: undefined } }, 400, -32602],
  ['capabilities that are a list', { declaration: { capabilities: [] } }, 400, -32602],
  ['a text as clientInfo', { declaration: { clientInfo: 'me' } }, 400, -32602],
  ['an unknown log level', { declaration: { logLevel: 'loud' } }, 400, -32602],
  ['a number as log level', { declaration: { logLevel: 3 } }, 400, -32602],
  [
    'a revision of tomorrow',
    { declaration: { revision: '2027-01-01' }, headers: { 'mcp-protocol-version': '2027-01-01' } },
    400,
    -32022,
  ],
  [
    '`latest` as revision',
    { declaration: { revision: 'latest' }, headers: { 'mcp-protocol-version': 'latest' } },
    400,
    -32022,
  ],
  [
    'an empty revision',
    { declaration: { revision: '' }, headers: { 'mcp-protocol-version': undefined } },
    400,
    -32022,
  ],
  ['another revision in the header', { headers: { 'mcp-protocol-version': '2025-11-25' } }, 400, -32020],
  ['no revision in the headers', { headers: { 'mcp-protocol-version': undefined } }, 400, -32020],
  ['no Mcp-Method', { headers: { 'mcp-method': undefined } }, 400, -32020],
  ['another Mcp-Method', { headers: { 'mcp-method': 'tools/call' } }, 400, -32020],
  ['an Mcp-Method in other letters', { headers: { 'mcp-method': 'Tools/List' } }, 400, -32020],
  ['no Mcp-Name', call({ headers: { 'mcp-name': undefined } }), 400, -32020],
  ['another Mcp-Name', call({ headers: { 'mcp-name': 'Echo' } }), 400, -32020],
  ['an Mcp-Name in broken Base64', call({ headers: { 'mcp-name': '=?base64?ZWNobw?=' } }), 400, -32020],
  ['an Mcp-Name without a name', call({ params: {}, headers: { 'mcp-name': 'echo' } }), 400, -32020],
];

for (const [why, post, status, code] of REFUSED)
  test(`a request with ${why} is refused with ${status} and ${code}, and reaches nobody`, async (t) => {
    const { post: send, exchanges } = await modernListener(t);
    const answer = await send(post);
    assert.equal(answer.status, status);
    const { error, jsonrpc } = await answer.json();
    assert.deepEqual([jsonrpc, error?.code], ['2.0', code]);
    assert.equal(exchanges.length, 0);
  });

test('an unknown revision is answered with those that there are, and the one that was asked for', async (t) => {
  const { post } = await modernListener(t);
  const answer = await post({
    id: '"a"',
    declaration: { revision: '1900-01-01' },
    headers: { 'mcp-protocol-version': '1900-01-01' },
  });
  const { id, error } = (await answer.json()) as { id: unknown; error: { data: Record<string, unknown> } };
  assert.equal(id, 'a');
  assert.deepEqual([error.data['supported'], error.data['requested']], [['2026-07-28'], '1900-01-01']);
});

test('a member of `_meta` that is given twice is refused', async (t) => {
  const { post, exchanges } = await modernListener(t);
  const meta = JSON.stringify(META).replace('{', '{"io.modelcontextprotocol/protocolVersion":"2026-07-28",');
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":${meta}}}`;
  assert.equal((await (await post({ body })).json()).error?.code, -32602);
  assert.equal(exchanges.length, 0);
});

test('capabilities that are nested without end are refused, and the listener lives', async (t) => {
  const { post } = await modernListener(t);
  const deep = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
  const meta = JSON.stringify(META).replace(
    '"io.modelcontextprotocol/clientCapabilities":{}',
    `"io.modelcontextprotocol/clientCapabilities":${deep}`,
  );
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":${meta}}}`;
  const refused = await (await post({ body })).json();
  assert.ok(refused.error, JSON.stringify(refused));
  assert.equal((await post({})).status, 200);
});

test('GET and DELETE have no meaning in the modern era', async (t) => {
  const { send } = await modernListener(t);
  for (const method of ['GET', 'DELETE']) {
    const answer = await send({ method, headers: { ...PLAIN, 'mcp-protocol-version': '2026-07-28' } });
    assert.deepEqual([answer.status, answer.headers.allow], [405, 'POST']);
  }
});

test('what is no JSON by its type, too large, or wants no answer that there is, is refused by status', async (t) => {
  const { post } = await modernListener(t);
  assert.equal((await post({ headers: { 'content-type': 'text/plain' } })).status, 415);
  assert.equal((await post({ params: { pad: 'x'.repeat(200_000) } })).status, 413);
  assert.equal((await post({ headers: { accept: 'text/html' } })).status, 406);
  assert.equal((await post({ headers: { origin: 'http://evil.example' } })).status, 403);
});

test('a name that needs Base64 is read from it', async (t) => {
  const { post, exchanges } = await modernListener(t);
  const coded = `=?base64?${Buffer.from('wörld').toString('base64')}?=`;
  const answer = await post({
    method: 'tools/call',
    params: { name: 'wörld' },
    headers: { 'mcp-name': coded },
  });
  assert.equal(answer.status, 200);
  assert.equal(exchanges.length, 1);
});

test('arguments that are mirrored in headers are compared, once the tool is known', async (t) => {
  const plan = [{ header: 'Mcp-Param-Region', path: ['region'], type: 'string' as const }];
  const { post, exchanges } = await modernListener(t, { plan });
  const send = (region: unknown, header: string | undefined) =>
    post({
      method: 'tools/call',
      params: { name: 'sql', arguments: { region } },
      headers: { 'mcp-param-region': header },
    });
  assert.equal((await send('eu', 'eu')).status, 200);
  assert.equal((await send(undefined, undefined)).status, 200);
  for (const [value, header] of [
    ['eu', 'us'],
    ['eu', undefined],
    ['eu', '=?base64?ZXU?='],
    [undefined, 'eu'],
  ] as const) {
    const answer = await send(value, header);
    assert.deepEqual([answer.status, (await answer.json()).error?.code], [400, -32020]);
  }
  assert.equal(exchanges.length, 2);
});

test('sessions and event ids of another era are ignored, and none is given', async (t) => {
  const { post } = await modernListener(t);
  const answer = await post({ headers: { 'mcp-session-id': 'stale', 'last-event-id': '7' } });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers['mcp-session-id'], undefined);
});

test('a notification is accepted without headers of its own; a cancellation is none here', async (t) => {
  const { post, notified } = await modernListener(t);
  for (const method of ['notifications/cancelled', 'notifications/vendor']) {
    const body = JSON.stringify({ jsonrpc: '2.0', method, params: { _meta: META, requestId: 1 } });
    const answer = await post({ body, headers: { 'mcp-method': undefined } });
    assert.deepEqual([answer.status, await answer.text()], [202, '']);
  }
  assert.deepEqual(
    notified.map(({ method }) => method),
    ['notifications/vendor'],
  );
});

test('the preflight of a browser admits the headers that mirror a body', async (t) => {
  const { send } = await modernListener(t);
  const answer = await send({
    method: 'OPTIONS',
    headers: {
      origin: 'http://localhost:3000',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'mcp-method, mcp-param-region, x-evil',
    },
  });
  const allowed = String(answer.headers['access-control-allow-headers']).toLowerCase().split(', ');
  assert.ok(['mcp-method', 'mcp-name', 'mcp-param-region'].every((name) => allowed.includes(name)));
  assert.equal(allowed.includes('x-evil'), false);
});

test('agents of both eras share a socket, each answered in its own way', async (t) => {
  const { post, send, exchanges } = await modernListener(t, {
    handle: async (exchange) =>
      answered(
        exchange,
        exchange.message.method === 'initialize'
          ? '{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}'
          : '{}',
      ),
  });
  const hello = await send({
    method: 'POST',
    headers: PLAIN,
    body: '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}',
  });
  const session = String(hello.headers['mcp-session-id']);
  await hello.text();
  for (let i = 0; i < 3; i++) {
    assert.equal((await post({})).status, 200);
    const legacy = await send({
      method: 'POST',
      headers: { ...PLAIN, 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' },
      body: `{"jsonrpc":"2.0","id":${i},"method":"tools/list"}`,
    });
    assert.equal(legacy.status, 200);
  }
  assert.deepEqual(exchanges.map(({ era }) => era).slice(1), [
    'modern',
    'legacy',
    'modern',
    'legacy',
    'modern',
    'legacy',
  ]);
});
