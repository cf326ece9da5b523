import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LegacyOnModern } from '../support/legacy-on-modern.js';
import { ODD_ERRORS, ODD_LISTS, ODD_OBJECTS, ODD_RESULTS } from '../support/odd-json.js';

/** The text of `result` or `error` that an agent gets for what a server answered. */
async function body(answer: string, method = 'x/y'): Promise<string> {
  const text = await new LegacyOnModern(() => answer).agent().request(method, '{}');
  return text.replace(/^\{"jsonrpc":"2\.0","id":1,"(?:result|error)":(.*)\}$/s, '$1');
}

/** An object with a member before its others. */
function withMember(member: string, odd: string): string {
  return `{${member}${odd.slice(1).trimStart().startsWith('}') ? '' : ','}${odd.slice(1)}`;
}

test('a result loses its type, and every other byte stays', async () => {
  for (const [what, odd] of Object.entries({ ...ODD_OBJECTS, ...ODD_RESULTS, ...ODD_LISTS }))
    assert.equal(await body(withMember('"resultType":"complete"', odd)), odd.replace(/^\{\s*/, '{'), what);
  assert.equal(
    await body('{ "a":1 , "\\u0072esultType" : "complete" , "ttlMs":5,"cacheScope":"public" }'),
    '{ "a":1 , "ttlMs":5,"cacheScope":"public" }',
  );
});

test('a result without a type, and one that is no object, pass as they are', async () => {
  for (const odd of ['{}', '[1.0]', '"x"', 'null', '9007199254740993', ...Object.values(ODD_RESULTS)])
    assert.equal(await body(odd), odd);
});

test('a result of a type that no legacy revision has is a fault of the server', async () => {
  for (const [type, named] of [
    ['"task"', 'task'],
    ['"vendor"', 'vendor'],
    ['7', '7'],
    ['null', 'null'],
  ] as const)
    await assert.rejects(body(`{"resultType":${type},"content":[]}`, 'tools/call'), {
      code: 'server_protocol',
      message: `Server "one" answered with a result of type ${JSON.stringify(named)}, which its agent's revision does not have`,
    });
});

test('a result whose type is given twice is a fault of the server', async () => {
  for (const second of ['input_required', 'complete']) {
    const twice = `{"resultType":"complete","content":[],"resultType":"${second}"}`;
    await assert.rejects(body(twice), { code: 'server_protocol', message: /given twice/ });
  }
});

test('errors of the server pass byte for byte', async () => {
  for (const [what, odd] of Object.entries({
    ...ODD_ERRORS,
    'an unknown resource': '{"code":-32602,"message":"Unknown","data":{"uri":"a:\\/b"}}',
    'an undefined code': '{"code":-32099,"message":"x"}',
  }))
    assert.equal(await body(`{"error":${odd}}`), odd, what);
});

test('what the gateway did wrong is no fault of the agent’s, and the server’s own words stay', async () => {
  for (const code of [-32020, -32022])
    assert.equal(
      await body(
        `{"error":{"x":1.0,"code":${code},"message":"\\u0042ad","data":{"supported":["9"],"n":9007199254740993}}}`,
      ),
      `{"x":1.0,"code":-32603,"message":"Server \\"one\\" refused what the gateway sent: Bad","data":{"server":"one","error":{"code":${code},"message":"\\u0042ad","data":{"supported":["9"],"n":9007199254740993}}}}`,
    );
});

test('a capability that an agent did not declare is named in its own words', async () => {
  const required = '{"requiredCapabilities":{"sampling":{}}}';
  assert.deepEqual(JSON.parse(await body(`{"error":{"code":-32021,"message":"no","data":${required}}}`)), {
    code: -32602,
    message: 'Server "one" needs a capability that its agent did not declare: no',
    data: { server: 'one', error: { code: -32021, message: 'no', data: JSON.parse(required) } },
  });
});

test('an error that says nothing is told all the same', async () => {
  assert.deepEqual(JSON.parse(await body('{"error":{"code":-32020}}')), {
    code: -32603,
    message: 'Server "one" refused what the gateway sent',
    data: { server: 'one', error: { code: -32020 } },
  });
});

test('a call that asks for a task is refused before anything is sent, and other methods may use the word', async () => {
  const bench = new LegacyOnModern(() => '{}');
  const agent = bench.agent();
  await assert.rejects(agent.request('tools/call', '{"name":"x","task":{"ttl":1}}'), {
    code: 'invalid_params',
    message: /"one".*`task`/,
  });
  assert.equal(bench.sent.length, 0);
  assert.equal(await agent.request('vendor/x', '{"task":1}'), '{"jsonrpc":"2.0","id":1,"result":{}}');
});
