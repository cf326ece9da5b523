import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/base/errors.js';
import type { Store } from '../../src/cache/store.js';
import { answer, countingServer, Gateway, namesOf, tools } from './gateway.js';

test('`_meta` does not change a result, and neither do empty params', async () => {
  const gateway = new Gateway(countingServer());
  for (const params of ['', '{}', ' { } ', '{"_meta":{"progressToken":1}}', '{"_meta":null}'])
    await gateway.list({ params });
  assert.equal(gateway.wire.length, 1);
});

for (const params of [
  '{"filter":"x"}',
  '{"inputResponses":{}}',
  '{"requestState":"s"}',
  '{"cursor":null}',
  '{"cursor":1}',
  '{"uri":"file:///a"}',
  '{"cursor":"a","cursor":"b"}',
  '[]',
])
  test(`a request with params ${params} is neither answered from the cache nor kept`, async () => {
    const gateway = new Gateway(countingServer());
    await gateway.list();
    assert.deepEqual(namesOf(await gateway.list({ params })), ['v2']);
    assert.deepEqual(namesOf(await gateway.list({ params })), ['v3']);
    assert.deepEqual(namesOf(await gateway.list()), ['v1']);
  });

for (const params of ['', '{}', '{"uri":1}', '{"uri":"a","cursor":"b"}'])
  test(`a read with params ${params || 'left out'} passes each time`, async () => {
    const gateway = new Gateway(async (exchange) => answer(exchange, '{"contents":[],"ttlMs":60000}'));
    for (const _ of [1, 2]) await gateway.list({ method: 'resources/read', params });
    assert.equal(gateway.wire.length, 2);
  });

test('resources are kept by their uri, however it is spelled', async () => {
  const gateway = new Gateway(async (exchange) => answer(exchange, '{"contents":[],"ttlMs":60000}'));
  for (const uri of ['"file:///a"', '"file:///b"', '"file:\\/\\/\\/a"', '"\\u0066ile:///b"'])
    await gateway.list({ method: 'resources/read', params: `{"uri":${uri}}` });
  assert.equal(gateway.wire.length, 2);
});

for (const resultType of ['"input_required"', '"task"', '1', 'null', '""'])
  test(`an answer whose resultType is ${resultType} passes unchanged and is not kept`, async () => {
    const gateway = new Gateway(async (exchange) =>
      answer(exchange, `{"resultType":${resultType},"ttlMs":60000,"inputRequests":{}}`),
    );
    assert.equal(JSON.stringify((await gateway.list())['resultType']), resultType);
    await gateway.list();
    assert.equal(gateway.wire.length, 2);
  });

test('an answer that calls itself complete is kept', async () => {
  const gateway = new Gateway(countingServer({ resultType: 'complete', ttlMs: 1_000 }));
  await gateway.list();
  await gateway.list();
  assert.equal(gateway.wire.length, 1);
});

for (const result of [
  '{}',
  '{"tools":{}}',
  '{"tools":null}',
  '{"prompts":[]}',
  '[]',
  '"x"',
  '{"tools":[],"tools":[]}',
])
  test(`the result ${result} is an error that names the server, and is not kept`, async () => {
    const gateway = new Gateway(async (exchange) => answer(exchange, result));
    for (const _ of [1, 2])
      await assert.rejects(gateway.list(), (error: GatewayError) => {
        assert.ok(error instanceof GatewayError);
        assert.equal(error.code, 'server_protocol');
        assert.equal(error.details.serverId, 'alpha');
        assert.match(error.message, /"alpha".*tools\/list.*`tools`/);
        return true;
      });
    assert.equal(gateway.wire.length, 2);
  });

test('a malformed list leaves an entry that is still fresh alone', async () => {
  let broken = false;
  const gateway = new Gateway(async (exchange) => answer(exchange, broken ? '{"tools":0}' : tools(['a'])));
  await gateway.list();
  broken = true;
  await assert.rejects(gateway.list({ fresh: true }), { code: 'server_protocol' });
  assert.deepEqual(namesOf(await gateway.list()), ['a']);
});

test('hints are found wherever they stand, and not below the top of the result', async () => {
  const nested = '{"tools":[{"name":"a","ttlMs":0,"cacheScope":"public"}],"_meta":{"ttlMs":0}}';
  const gateway = new Gateway(async (exchange) => answer(exchange, nested));
  await gateway.list({ token: 'A' });
  await gateway.list({ token: 'A' });
  assert.equal(gateway.wire.length, 1);
});

test('a store that fails is an event and a miss', async () => {
  const fail = (): never => {
    throw new Error('disk is full');
  };
  const store: Store = { lookup: fail, commit: fail, remove: fail, select: fail, forget: fail };
  const gateway = new Gateway(countingServer(), { store });
  assert.deepEqual(namesOf(await gateway.list()), ['v1']);
  gateway.changed();
  assert.deepEqual(namesOf(await gateway.list()), ['v2']);
  assert.ok(
    gateway.events.some(
      ({ type, ...event }) => type === 'warning' && /disk is full/.test(JSON.stringify(event)),
    ),
  );
});

test('a server that is not configured is the next layer’s to refuse', async () => {
  const gateway = new Gateway(() => Promise.reject(new GatewayError('server_unknown', 'No server "alpha"')));
  await assert.rejects(gateway.list(), { code: 'server_unknown' });
});
