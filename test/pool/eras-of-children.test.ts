import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { FakeClock } from '../support/fake-clock.js';
import { forwarding, PATIENCE } from '../support/forwarding.js';
import { modernPost, responseOf } from '../support/modern-post.js';
import { RawAgent } from '../support/raw-agent.js';

const CHILD = fileURLToPath(new URL('../support/probed-child.mjs', import.meta.url));

async function benchOf(t: TestContext, manner: string, more: object = {}, clock?: FakeClock) {
  const entry = { command: process.execPath, args: [CHILD, manner], ...more };
  const bench = await forwarding(t, { servers: { one: entry }, ...(clock ? { clock } : {}) });
  const call = async () =>
    responseOf(await modernPost(bench.url(), 'tools/call', { name: 'pid', arguments: {} }));
  return { bench, call };
}

for (const manner of ['answer', 'flood', 'exit', 'crash'])
  test(
    `a child that meets the probe by ${manner} serves modern agents in the end, from one process`,
    PATIENCE,
    async (t) => {
      const { call } = await benchOf(t, manner);
      const pids = new Set<string>();
      for (let i = 0; i < 3; i++) pids.add((await call()).result.content[0].text);
      assert.equal(pids.size, 1);
      assert.match([...pids][0] ?? '', /^\d+$/);
    },
  );

test(
  'a child that is silent on the probe is taken for a legacy one after five seconds',
  PATIENCE,
  async (t) => {
    const clock = new FakeClock();
    const { bench, call } = await benchOf(t, 'silent', {}, clock);
    const called = call();
    // The deadline is armed once the child runs.
    const run = setInterval(() => clock.advance(500), 20);
    t.after(() => clearInterval(run));
    assert.match((await called).result.content[0].text, /^\d+$/);
    const found = await bench.events.first((event) => event.type === 'era_found' && event.era === 'modern');
    assert.equal(found.type === 'era_found' && found.speaks, false);
  },
);

test('a child that cannot be started has no era, and the failure names the server', PATIENCE, async (t) => {
  const bench = await forwarding(t, { servers: { one: { command: '/nowhere/at/all' } } });
  const answer = await responseOf(await modernPost(bench.url(), 'tools/list'));
  assert.match(answer.error?.message ?? '', /"one"/);
  assert.equal(
    bench.events.all.some(({ type }) => type === 'era_found'),
    false,
  );
});

test('a legacy agent on a legacy child starts one process, and no probe', PATIENCE, async (t) => {
  const { bench } = await benchOf(t, 'exit');
  const agent = await RawAgent.connect(bench.url());
  const { answer } = await agent.request('tools/call', '{"name":"pid","arguments":{}}');
  assert.match(answer.result.content[0].text, /^\d+$/);
  assert.equal(bench.events.all.filter(({ type }) => type === 'server_connected').length, 1);
});

test('agents of both eras with the same capabilities share a legacy child', PATIENCE, async (t) => {
  const { bench, call } = await benchOf(t, 'answer', { era: 'legacy' });
  const agent = await RawAgent.connect(bench.url());
  const { answer } = await agent.request('tools/call', '{"name":"pid","arguments":{}}');
  assert.equal((await call()).result.content[0].text, answer.result.content[0].text);
});

test(
  'a modern child that takes longer to start than the probe waits is served all the same',
  PATIENCE,
  async (t) => {
    const clock = new FakeClock();
    const { call } = await benchOf(t, 'slow-modern', {}, clock);
    const run = setInterval(() => clock.advance(500), 20);
    t.after(() => clearInterval(run));
    assert.match((await call()).result.content[0].text, /^\d+$/);
  },
);
