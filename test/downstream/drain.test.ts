import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { callText, codeOf, gate, TestAgent, withGateway } from '../support/agent-gateway.js';
import { open } from '../support/agent-http.js';

function slowServer() {
  const release = gate();
  const slow = async () => {
    await release.opened;
    return '{"content":[]}';
  };
  return { release, server: { on: { 'tools/call': slow } } };
}

test('what is under way finishes, general streams and idle sockets end at once', async () => {
  const { release, server } = slowServer();
  await withGateway({ server }, async ({ url, gateway, server: upstream }) => {
    const agent = await TestAgent.connect(url());
    const general = await agent.listen();
    const idle = connect(gateway.port, '127.0.0.1');
    idle.resume().write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(idle, 'data');
    const pending = agent.call('x', '"q"');
    await upstream.until(() => upstream.count('tools/call') === 1);
    const closed = once(idle, 'close');
    const drained = gateway.drain();
    assert.deepEqual(await general.rest(), []);
    await closed;
    release.open();
    const answer = await (await pending).json();
    assert.deepEqual([answer.id, answer.result], ['q', { content: [] }]);
    await drained;
    assert.equal(gateway.sessions, 0);
    await assert.rejects(open(url('/healthz')));
  })();
});

test('what does not finish gets an error at the deadline', async () => {
  const { server } = slowServer();
  await withGateway(
    { server, config: { shutdownMs: 10_000 } },
    async ({ url, gateway, clock, server: upstream }) => {
      const agent = await TestAgent.connect(url(), { revision: '2025-06-18' });
      const pending = agent.call('x', '"q"');
      await upstream.until(() => upstream.count('tools/call') === 1);
      const drained = gateway.drain();
      await clock.armed((delayMs) => delayMs === 9_000);
      clock.advance(9_000);
      const answer = await pending;
      assert.equal(answer.status, 503);
      assert.equal(codeOf(await answer.json()), 'shutting_down');
      await drained;
    },
  )();
});

test('a stream that has begun gets the error in-band, as its last event', async () => {
  const { server } = slowServer();
  await withGateway(
    { server, config: { shutdownMs: 10_000 } },
    async ({ url, gateway, clock, server: upstream }) => {
      const agent = await TestAgent.connect(url());
      const pending = agent.call('x', '"q"');
      await upstream.until(() => upstream.count('tools/call') === 1);
      clock.advance(15_000);
      const answer = await pending;
      await answer.next();
      const drained = gateway.drain();
      await clock.armed((delayMs) => delayMs === 9_000);
      clock.advance(9_000);
      const last = await answer.message();
      assert.equal(last?.id, 'q');
      assert.equal(codeOf(last), 'shutting_down');
      assert.equal(await answer.message(), undefined);
      await drained;
    },
  )();
});

test('new work on an open socket is refused while the gateway goes down', async () => {
  const { release, server } = slowServer();
  await withGateway({ server }, async ({ url, gateway, server: upstream }) => {
    const agent = await TestAgent.connect(url());
    const pending = agent.call('x');
    await upstream.until(() => upstream.count('tools/call') === 1);
    const half = connect(gateway.port, '127.0.0.1');
    const body = callText('y', '"late"');
    half.write(
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Session-Id: ${agent.session}\r\nContent-Length: ${body.length}\r\n`,
    );
    await once(half, 'connect');
    await (await open(url('/healthz'))).text();
    const drained = gateway.drain();
    half.write(`\r\n${body}`);
    const [chunk] = (await once(half, 'data')) as [Buffer];
    assert.match(chunk.toString(), /^HTTP\/1\.1 503 /);
    assert.match(chunk.toString(), /"late"/);
    assert.match(chunk.toString(), /shutting_down/);
    release.open();
    await (await pending).text();
    await drained;
    half.destroy();
    assert.equal(upstream.count('tools/call'), 1);
  })();
});

test('closing does not wait for anybody', async () => {
  const { server } = slowServer();
  await withGateway({ server }, async ({ url, gateway, server: upstream }) => {
    const agent = await TestAgent.connect(url());
    const general = await agent.listen();
    const pair = await open(url('/sse'), { headers: { accept: 'text/event-stream' } });
    await pair.next();
    const pending = agent.call('x');
    await upstream.until(() => upstream.count('tools/call') === 1);
    await gateway.close();
    assert.deepEqual(await general.rest(), []);
    assert.deepEqual(await pair.rest(), []);
    assert.equal((await pending).status, 503);
  })();
});
