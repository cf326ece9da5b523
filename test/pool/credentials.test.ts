import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { type TestContext, test } from 'node:test';
import { serve } from '../support/manager-bench.js';
import { openGateway, remote } from '../support/pool-bench.js';
import type { RawAgent } from '../support/raw-agent.js';

/** A server that notes the verb, the method and two headers of every request. */
async function watching(t: TestContext) {
  const seen: { readonly what: string; readonly authorization?: string; readonly key?: string }[] = [];
  const look = ({ method, headers }: IncomingMessage) => {
    const { authorization, 'x-api-key': key } = headers as Record<string, string>;
    seen.push({ what: method ?? '', ...(authorization ? { authorization } : {}), ...(key ? { key } : {}) });
    return false;
  };
  const ok = () => '{}';
  const server = await serve(t, {
    intercept: look,
    on: {
      'tools/call': ok,
      'resources/read': ok,
      'prompts/get': ok,
      'resources/subscribe': ok,
      'resources/unsubscribe': ok,
      'completion/complete': ok,
      'logging/setLevel': ok,
      ping: ok,
    },
  });
  return { server, seen };
}

/** Everything that an agent can send. */
async function sayEverything(agent: RawAgent): Promise<void> {
  await agent.request('tools/list');
  await agent.call('any');
  await agent.request('resources/read', '{"uri":"file:///a"}');
  await agent.request('prompts/get', '{"name":"a"}');
  await agent.request('resources/subscribe', '{"uri":"file:///a"}');
  await agent.request('completion/complete', '{"ref":{"type":"ref/prompt","name":"a"},"argument":{}}');
  await agent.request('logging/setLevel', '{"level":"info"}');
  await agent.request('ping');
  await agent.notify('notifications/roots/list_changed');
  await agent.listen();
}

const VARIANTS = {
  "the agent's token": {
    entry: {},
    token: 'of-the-agent',
    expected: { authorization: 'Bearer of-the-agent' },
  },
  'a configured credential': {
    entry: { headers: { Authorization: 'Bearer of-the-operator', 'X-Api-Key': 'k1' } },
    token: 'of-the-agent',
    expected: { authorization: 'Bearer of-the-operator', key: 'k1' },
  },
  "the agent's token beside a configured header": {
    entry: { headers: { 'X-Api-Key': 'k1' } },
    token: 'of-the-agent',
    expected: { authorization: 'Bearer of-the-agent', key: 'k1' },
  },
  'no credential at all': { entry: {}, token: undefined, expected: {} },
} as const;

for (const [what, { entry, token, expected }] of Object.entries(VARIANTS))
  test(`every request to a server carries ${what}, whatever its verb and method`, async (t) => {
    const { server, seen } = await watching(t);
    const { agent, gateway } = await openGateway(t, { one: remote(server.url, entry) });
    const one = await agent(token === undefined ? {} : { token });
    await sayEverything(one);
    await server.until(() => server.openStreams === 1);
    await gateway.close();
    assert.deepEqual([...new Set(seen.map((request) => request.what))].sort(), ['DELETE', 'GET', 'POST']);
    assert.ok(seen.length >= 13, String(seen.length));
    for (const { what: verb, ...credentials } of seen) assert.deepEqual(credentials, expected, verb);
  });

test("an agent's own token is used even if the server refuses it, never the operator's in its place", async (t) => {
  const used = new Set<string | undefined>();
  const server = await serve(t, {
    intercept: ({ headers }, response) => {
      used.add(headers.authorization);
      if (headers.authorization === 'Bearer of-the-operator') return false;
      response.writeHead(401, { 'www-authenticate': 'Bearer realm="own"' }).end();
      return true;
    },
  });
  const entry = { headers: { Authorization: 'Bearer of-the-operator' }, forwardAuthorization: true };
  const { url } = await openGateway(t, { one: remote(server.url, entry) });
  const response = await fetch(url(), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: 'Bearer invalid',
    },
    body: '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}',
  });
  assert.equal(response.status, 401);
  assert.equal(response.headers.get('www-authenticate'), 'Bearer realm="own"');
  assert.deepEqual([...used], ['Bearer invalid']);
});

test('a right that is lacking reaches the agent as 403, with the scope that is asked for', async (t) => {
  const challenge = 'Bearer error="insufficient_scope", scope="files:write"';
  const server = await serve(t, {
    intercept: ({ headers, method }, response) => {
      if (headers['mcp-session-id'] === undefined || method !== 'POST' || armed === false) return false;
      response.writeHead(403, { 'www-authenticate': challenge }).end();
      return true;
    },
  });
  let armed = false;
  const { agent, gateway } = await openGateway(t, { one: remote(server.url) });
  const one = await agent({ token: 'T' });
  armed = true;
  const { status, headers } = await one.call('write');
  assert.deepEqual([status, headers.get('www-authenticate')], [403, challenge]);
  armed = false;
  assert.equal((await one.request('tools/list')).status, 200);
  assert.equal(gateway.poolSize, 1);
  assert.equal(server.count('initialize'), 1);
});
