import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { GatewayError } from '../../src/base/errors.js';
import type { Exchange } from '../../src/pipeline/exchange.js';
import { notification } from '../../src/protocol/compose.js';
import { type BridgedAgent, DONE, FORM, inputRequired, LegacyOnModern } from '../support/legacy-on-modern.js';

const REASON = notification('notifications/cancelled', { requestId: 1, reason: 'enough' });
const CANCELLED = new GatewayError('cancelled', 'The request was cancelled');

/** A call under way that can be cancelled as its agent does it. */
function begin(bench: LegacyOnModern): {
  readonly agent: BridgedAgent;
  readonly ended: Promise<void>;
  cancel(): void;
} {
  bench.withdrawn = () => CANCELLED;
  const aborter = new AbortController();
  const agent = bench.agent({ capabilities: '{"elicitation":{},"roots":{}}' });
  const done = agent.request('tools/call', '{"name":"x"}', '1', aborter.signal);
  const ended = assert.rejects(done, { code: 'cancelled' });
  return { agent, ended, cancel: () => aborter.abort(REASON) };
}

/** A leg that ends only by its signal, as one of the pool does. */
async function untilAborted({ signal }: Exchange): Promise<never> {
  await once(signal, 'abort');
  assert.equal(signal.reason, REASON);
  throw CANCELLED;
}

test('a cancellation ends the first leg', async () => {
  const bench = new LegacyOnModern((_, exchange) => untilAborted(exchange));
  const { ended, cancel } = begin(bench);
  await bench.nth(1);
  cancel();
  await ended;
});

test('a cancellation withdraws every question that is open, with its reason, and nothing is sent after it', async () => {
  const bench = new LegacyOnModern(() => inputRequired(`{"a":${FORM},"b":{"method":"roots/list"}}`));
  const { agent, ended, cancel } = begin(bench);
  await agent.question(2);
  agent.asked[0]?.answer('"result":{}');
  cancel();
  await ended;
  for (const { signal } of agent.asked) assert.equal(signal.reason, REASON);
  assert.equal(bench.sent.length, 1);
  assert.deepEqual(bench.clock.delays, []);
});

test('a cancellation ends the wait before a request is sent again', async () => {
  const bench = new LegacyOnModern(() => inputRequired(undefined, '"s"'));
  const { ended, cancel } = begin(bench);
  await bench.clock.armed((delay) => delay === 250);
  cancel();
  await ended;
  assert.equal(bench.sent.length, 1);
  assert.deepEqual(bench.clock.delays, []);
});

test('a cancellation that comes with the demand for input sends nothing and leaves nothing behind', async () => {
  for (const demand of [inputRequired(undefined, '"s"'), inputRequired(`{"a":${FORM}}`)]) {
    let answer!: (text: string) => void;
    const bench = new LegacyOnModern(() => new Promise((resolve) => (answer = resolve)));
    const { agent, ended, cancel } = begin(bench);
    await bench.nth(1);
    answer(demand);
    cancel();
    await ended;
    assert.equal(bench.sent.length, 1);
    assert.ok(agent.asked.every(({ signal }) => signal.aborted));
    assert.deepEqual(bench.clock.delays, []);
  }
});

test('a cancellation ends a later leg', async () => {
  const bench = new LegacyOnModern(({ params }, exchange) =>
    params.inputResponses === undefined ? inputRequired(`{"a":${FORM}}`) : untilAborted(exchange),
  );
  const { agent, ended, cancel } = begin(bench);
  (await agent.question()).answer('"result":{}');
  await bench.nth(2);
  cancel();
  await ended;
});

test('a cancelled call leaves the calls of others alone', async () => {
  const bench = new LegacyOnModern(({ params }) =>
    params.inputResponses === undefined ? inputRequired(`{"a":${FORM}}`) : DONE,
  );
  const { agent, ended, cancel } = begin(bench);
  await agent.question();
  const other = bench.agent({ id: 'other', capabilities: '{"elicitation":{}}' });
  const done = other.request('tools/call', '{"name":"x"}');
  const question = await other.question();
  cancel();
  await ended;
  assert.equal(question.signal.aborted, false);
  question.answer('"result":{}');
  assert.equal(await done, '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}');
});
