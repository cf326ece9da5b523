import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/base/errors.js';
import {
  DONE,
  FORM,
  inputRequired,
  LegacyOnModern,
  PARK_MS,
  PREFIX,
  textOf,
  wire,
} from '../support/legacy-on-modern.js';
import { ODD_OBJECTS } from '../support/odd-json.js';

const EVERYTHING = '{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}';
const CALL = '{"name":"x","arguments":{"n":9007199254740993}}';

/** A server that asks so in its first round and is content with whatever it gets. */
function asking(first: string): LegacyOnModern {
  return new LegacyOnModern(({ params }) =>
    params.inputResponses === undefined && params.requestState === undefined ? first : DONE,
  );
}

/** What becomes of a call that is answered so, of an agent that offers everything. */
async function rejection(answer: string, method = 'tools/call', capabilities = EVERYTHING): Promise<unknown> {
  const bench = new LegacyOnModern(() => answer);
  const failure = await bench
    .agent({ capabilities })
    .request(method, '{"name":"x","uri":"a:b"}')
    .then(
      (text) => assert.fail(text),
      (error: unknown) => error,
    );
  assert.equal(bench.sent.length, 1);
  return failure;
}

test('a question is asked in the server’s bytes and its answer brought in the agent’s', async () => {
  for (const [what, odd] of Object.entries(ODD_OBJECTS)) {
    const params = `{"requestedSchema":{"x-odd":${odd}},"message":"\\u0057ho?" }`;
    const state = '"s\\u0074ate \\/ 😀"';
    const bench = asking(
      inputRequired(`{ "\\u0071 1":{"params":${params},"method":"elicitation\\/create"}}`, state),
    );
    const agent = bench.agent({ capabilities: EVERYTHING });
    const done = agent.request('tools/call', CALL, '"c"');
    const question = await agent.question();
    assert.equal(question.message.method, 'elicitation/create');
    assert.ok(question.raw.endsWith(`"params":${params}}`), what);
    const result = `{"action":"accept","content": ${odd}}`;
    question.answer(`"result":${result}`);
    assert.equal(await done, '{"jsonrpc":"2.0","id":"c","result":{"content":[]}}');
    const [first, second] = bench.sent.map(textOf) as [string, string];
    assert.equal(
      second,
      first.replace(
        '"params":{',
        () => `"params":{"inputResponses":{"q 1":${result}},"requestState":${state},`,
      ),
      what,
    );
    assert.notEqual(bench.sent[0], bench.sent[1]);
  }
});

test('all questions of a round are asked at once, whatever their kinds', async () => {
  const sampling = '{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}';
  const bench = asking(inputRequired(`{"a":${FORM},"b":${sampling},"c":{"method":"roots/list"}}`));
  const agent = bench.agent({ capabilities: EVERYTHING });
  const done = agent.request('tools/call', CALL);
  await agent.question(3);
  assert.deepEqual(
    agent.asked.map(({ message }) => message.method),
    ['elicitation/create', 'sampling/createMessage', 'roots/list'],
  );
  for (const { answer, message } of agent.asked.toReversed()) answer(`"result":{"to":"${message.method}"}`);
  await done;
  assert.equal(
    JSON.stringify(wire(bench.sent[1]).params.inputResponses),
    '{"a":{"to":"elicitation/create"},"b":{"to":"sampling/createMessage"},"c":{"to":"roots/list"}}',
  );
  assert.equal('requestState' in wire(bench.sent[1]).params, false);
});

test('a person who declines has answered', async () => {
  for (const action of ['decline', 'cancel']) {
    const bench = asking(inputRequired(`{"a":${FORM}}`));
    const agent = bench.agent({ capabilities: EVERYTHING });
    const done = agent.request('tools/call', CALL);
    (await agent.question()).answer(`"result":{"action":"${action}"}`);
    await done;
    assert.deepEqual(wire(bench.sent[1]).params.inputResponses, { a: { action } });
  }
});

test('each round begins from the first request, with its own answers and state', async () => {
  const rounds = [inputRequired(`{"a":${FORM}}`, '"1"'), inputRequired(`{"b":${FORM}}`), DONE];
  const bench = new LegacyOnModern(() => rounds[bench.sent.length - 1] as string);
  const agent = bench.agent({ capabilities: EVERYTHING });
  const done = agent.request('prompts/get', CALL);
  (await agent.question(1)).answer('"result":{"n":1}');
  (await agent.question(2)).answer('"result":{"n":2}');
  await done;
  const { inputResponses, requestState } = wire(bench.sent[1]).params;
  assert.deepEqual({ inputResponses, requestState }, { inputResponses: { a: { n: 1 } }, requestState: '1' });
  assert.deepEqual(wire(bench.sent[2]).params.inputResponses, { b: { n: 2 } });
  assert.equal('requestState' in wire(bench.sent[2]).params, false);
});

test('a server may ask ten times in one call and no more', async () => {
  const bench = new LegacyOnModern(() => inputRequired(`{"a":${FORM}}`));
  const agent = bench.agent({ capabilities: EVERYTHING });
  const done = agent.request('tools/call', CALL);
  const refused = assert.rejects(done, { code: 'server_protocol', message: /"one" asked .* than 10 times/ });
  for (let round = 1; round <= 10; round++) (await agent.question(round)).answer('"result":{}');
  await refused;
  assert.equal(bench.sent.length, 11);
  assert.equal(agent.asked.length, 10);
});

test('a round without questions waits a moment', async () => {
  for (const requests of [undefined, '{}']) {
    const bench = asking(inputRequired(requests, '"later"'));
    const done = bench.agent().request('resources/read', '{"uri":"a:b"}');
    assert.equal(await bench.clock.armed((delay) => delay <= 250), 250);
    bench.clock.advance(249);
    assert.equal(bench.sent.length, 1);
    bench.clock.advance(1);
    await done;
    assert.equal(wire(bench.sent[1]).params.requestState, 'later');
    assert.equal('inputResponses' in wire(bench.sent[1]).params, false);
    assert.deepEqual(bench.clock.delays, []);
  }
});

test('a URL gets an id that nobody can guess, and keeps its other bytes', async () => {
  const params = '{"mode":"url","url":"https:\\/\\/x","message":"m"}';
  const bench = asking(inputRequired(`{"a":{"method":"elicitation/create","params":${params}}}`));
  const ids = new Set<string>();
  for (const id of ['ada', 'bob']) {
    const agent = bench.agent({ id, capabilities: EVERYTHING });
    const done = agent.request('tools/call', CALL);
    const { message, raw, answer } = await agent.question();
    assert.match(message.params.elicitationId, /^[\w-]{20,}$/);
    assert.ok(raw.endsWith(`${params.slice(1)}}`), raw);
    ids.add(message.params.elicitationId);
    answer('"result":{"action":"accept"}');
    await done;
  }
  assert.equal(ids.size, 2);
});

test('what is no proper demand for input is a fault of the server and asks nobody', async () => {
  for (const [answer, message] of [
    [inputRequired(undefined), /does not say which/],
    [inputRequired('{}'), /does not say which/],
    [inputRequired('[]', '"s"'), /no object/],
    [inputRequired('null', '"s"'), /no object/],
    [inputRequired('{"a":1}'), /no request/],
    [inputRequired('{"a":{}}'), /no request/],
    [inputRequired('{"a":{"method":1}}'), /no request/],
    [inputRequired('{"a":{"method":"elicitation/create","params":[]}}'), /no request/],
    [inputRequired('{"a":{"method":"vendor/ask"}}'), /vendor\/ask/],
    [inputRequired(`{"a":${FORM},"b":{"method":"ping"}}`), /ping/],
    [inputRequired(`{"a":${FORM},"a":${FORM}}`), /given twice/],
    [inputRequired(undefined, '7'), /requestState/],
    [inputRequired(undefined, 'null'), /requestState/],
  ] as const) {
    const failure = await rejection(answer);
    assert.ok(failure instanceof GatewayError, answer);
    assert.equal(failure.code, 'server_protocol', answer);
    assert.match(failure.message, /^Server "one" /);
    assert.match(failure.message, message);
  }
});

test('only calls, prompts and resources may be answered with a demand for input', async () => {
  for (const method of ['tools/list', 'completion/complete', 'vendor/x'])
    for (const demand of [inputRequired(`{"a":${FORM}}`), inputRequired(undefined, '"s"')]) {
      const { code, message } = (await rejection(demand, method)) as GatewayError;
      assert.deepEqual([code, message], ['server_protocol', 'Server "one" asks for input where it must not']);
    }
});

test('a demand for input is one in any spelling', async () => {
  const bench = asking(`{"\\u0072esultType":"input\\u005frequired","inputRequests":{"a":${FORM}}}`);
  const agent = bench.agent({ capabilities: EVERYTHING });
  const done = agent.request('tools/call', CALL);
  (await agent.question()).answer('"result":{}');
  await done;
});

test('an agent is asked for nothing that it did not offer', async () => {
  const url = '{"method":"elicitation/create","params":{"mode":"url","url":"u","message":"m"}}';
  const tools = '{"method":"sampling/createMessage","params":{"messages":[],"tools":[]}}';
  for (const [capabilities, request] of [
    ['{}', FORM],
    ['{"elicitation":{}}', url],
    ['{"elicitation":{"url":{}}}', FORM],
    ['{"elicitation":{}}', '{"method":"roots/list"}'],
    ['{"sampling":{}}', tools],
  ] as const) {
    const failure = await rejection(inputRequired(`{"a":${request}}`), 'tools/call', capabilities);
    assert.match((failure as Error).message, /which that did not offer/);
  }
});

test('an agent’s error ends the call, says which question it was, and withdraws the others', async () => {
  const bench = asking(inputRequired(`{"who":${FORM},"b":{"method":"roots/list"}}`));
  const agent = bench.agent({ capabilities: EVERYTHING });
  const done = agent.request('tools/call', CALL);
  await agent.question(2);
  agent.asked[0]?.answer('"error":{"code":-32603,"message":"no window"}');
  await assert.rejects(done, {
    code: 'agent_unreachable',
    message: /elicitation\/create \("who"\), which server "one" needs, was an error: no window$/,
  });
  assert.equal(agent.asked[1]?.signal.aborted, true);
  assert.equal(bench.sent.length, 1);
  assert.deepEqual(bench.clock.delays, []);
});

test('an agent that cannot be reached ends the call', async () => {
  const bench = asking(inputRequired(`{"who":${FORM}}`));
  const agent = bench.agent({ capabilities: EVERYTHING });
  const done = agent.request('tools/call', CALL);
  (await agent.question()).fail(new GatewayError('agent_unreachable', 'The agent is gone'));
  await assert.rejects(done, { code: 'agent_unreachable', message: /"who".*: The agent is gone$/ });
});

test('an agent that never answers is not waited for longer than a call is held', async () => {
  const bench = asking(inputRequired(`{"who":${FORM}}`));
  bench.withdrawn = () => new GatewayError('cancelled', 'withdrawn');
  const agent = bench.agent({ capabilities: EVERYTHING });
  const done = agent.request('tools/call', CALL);
  const { signal } = await agent.question();
  bench.clock.advance(PARK_MS - 1);
  assert.equal(signal.aborted, false);
  bench.clock.advance(1);
  await assert.rejects(done, {
    code: 'agent_unreachable',
    message: /"who".* did not come within 300000 ms$/,
  });
  assert.equal(signal.aborted, true);
});

test('what happens to a later leg is the agent’s to know, and nothing is sent twice', async () => {
  const failure = new GatewayError('outcome_unknown', 'The link broke');
  const bench = new LegacyOnModern(({ params }) =>
    params.requestState === undefined ? inputRequired(undefined, '"s"') : Promise.reject(failure),
  );
  const done = bench.agent().request('tools/call', CALL);
  await bench.clock.armed((delay) => delay === 250);
  bench.clock.advance(250);
  await assert.rejects(done, failure);
  assert.equal(bench.sent.length, 2);
});

test('a call that has begun does not begin anew on a server that became a legacy one', async () => {
  const bench = new LegacyOnModern(({ params }) =>
    params.requestState === undefined
      ? inputRequired(undefined, '"s"')
      : Promise.reject(new GatewayError('other_era', 'not modern')),
  );
  const done = bench.agent().request('tools/call', CALL);
  await bench.clock.armed((delay) => delay === 250);
  bench.clock.advance(250);
  await assert.rejects(done, { code: 'server_unavailable', message: /"one" became another one/ });
});

test('the envelope and the progress token come with every leg', async () => {
  const bench = asking(inputRequired(`{"a":${FORM}}`));
  const agent = bench.agent({ capabilities: EVERYTHING });
  const done = agent.request('tools/call', '{"name":"x","_meta":{"progressToken":"t"}}');
  (await agent.question()).answer('"result":{}');
  await done;
  assert.deepEqual(wire(bench.sent[1]).params._meta, wire(bench.sent[0]).params._meta);
  assert.equal(wire(bench.sent[1]).params._meta[`${PREFIX}protocolVersion`], '2026-07-28');
});
