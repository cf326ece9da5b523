import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { GatewayError } from '../../src/base/errors.js';
import type { Backend } from '../../src/downstream/backend.js';
import { startHttp } from '../../src/downstream/http.js';
import { readMessage } from '../../src/wire/message.js';
import {
  callText,
  codeOf,
  gate,
  gatewayConfig,
  initializeText,
  POST_HEADERS,
  serverConfig,
  TestAgent,
  withGateway,
} from '../support/agent-gateway.js';
import { begin, open } from '../support/agent-http.js';
import { FakeClock } from '../support/fake-clock.js';

const IDLE_MS = 1_800_000;
const JSON_TYPE = { 'content-type': 'application/json' };
const RESULT = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } };

test(
  'a session that is not used ends after its time, and each use starts that anew',
  withGateway({ config: { sessionIdleMs: IDLE_MS } }, async ({ url, clock, gateway }) => {
    const agent = await TestAgent.connect(url());
    await TestAgent.connect(url());
    clock.advance(IDLE_MS - 1);
    assert.equal((await agent.post(callText('x'))).status, 200);
    clock.advance(1);
    assert.equal(gateway.sessions, 1);
    clock.advance(IDLE_MS - 2);
    assert.equal(gateway.sessions, 1);
    clock.advance(1);
    assert.equal(gateway.sessions, 0);
    const late = await agent.post(callText('x'));
    assert.equal(late.status, 404);
    assert.equal(JSON.parse(late.text).error.code, -32001);
  }),
);

test(
  'an open stream keeps a session, and its end starts the time',
  withGateway({ config: { sessionIdleMs: IDLE_MS } }, async ({ url, clock, gateway }) => {
    const agent = await TestAgent.connect(url());
    const general = await agent.listen();
    await general.next();
    clock.advance(10 * IDLE_MS);
    assert.equal(gateway.sessions, 1);
    general.drop();
    let again = await agent.listen();
    while (again.status === 409) again = await agent.listen();
    assert.equal(again.status, 200);
  }),
);

test('a request under way keeps a session', async () => {
  const release = gate();
  const slow = async () => {
    await release.opened;
    return '{"content":[]}';
  };
  const options = { config: { sessionIdleMs: IDLE_MS }, server: { on: { 'tools/call': slow } } };
  await withGateway(options, async ({ url, clock, gateway, server }) => {
    const agent = await TestAgent.connect(url());
    const pending = agent.call('x');
    await server.until(() => server.count('tools/call') === 1);
    clock.advance(3 * IDLE_MS);
    assert.equal(gateway.sessions, 1);
    release.open();
    assert.equal((await (await pending).message())?.id, 1);
  })();
});

test(
  'a full table gives the place of the longest unused session to a newcomer',
  withGateway({ config: { maxSessions: 3 } }, async ({ url, clock, gateway }) => {
    const [oldest, older, newest] = [
      await TestAgent.connect(url()),
      await TestAgent.connect(url()),
      await TestAgent.connect(url()),
    ];
    clock.advance(60_000);
    await oldest.post(callText('x'));
    await TestAgent.connect(url());
    assert.equal(gateway.sessions, 3);
    assert.equal((await older.post(callText('x'))).status, 404);
    assert.equal((await oldest.post(callText('x'))).status, 200);
    assert.equal((await newest.post(callText('x'))).status, 200);
  }),
);

test(
  'a full table of agents that were just here, or that listen, turns a newcomer away for now',
  withGateway({ config: { maxSessions: 2 } }, async ({ url, clock, gateway }) => {
    const listening = await TestAgent.connect(url());
    const general = await listening.listen();
    await general.next();
    clock.advance(100_000);
    const busy = await TestAgent.connect(url());
    clock.advance(59_000);
    const refused = await open(url(), {
      method: 'POST',
      headers: POST_HEADERS,
      body: initializeText({}, '"i"'),
    });
    assert.equal(refused.status, 503);
    assert.ok(Number(refused.headers['retry-after']) > 0);
    const answer = await refused.json();
    assert.equal(codeOf(answer), 'at_capacity');
    assert.equal((await open(url('/sse'), { headers: { accept: 'text/event-stream' } })).status, 503);
    assert.equal(gateway.sessions, 2);
    clock.advance(1_000);
    await TestAgent.connect(url());
    assert.equal((await busy.post(callText('x'))).status, 404);
    assert.equal((await listening.post(callText('x'))).status, 200);
  }),
);

test('DELETE ends a session with everything that is open in it', async () => {
  const forever = () => new Promise<string>(() => {});
  await withGateway({ server: { on: { 'tools/call': forever } } }, async ({ url, gateway, server }) => {
    const agent = await TestAgent.connect(url());
    const general = await agent.listen();
    const pending = agent.call('x', '"q"');
    await server.until(() => server.count('tools/call') === 1);
    const deleted = await agent.send({ method: 'DELETE' });
    assert.equal(deleted.status, 204);
    const answer = await (await pending).json();
    assert.equal(answer.id, 'q');
    assert.equal(codeOf(answer), 'cancelled');
    assert.deepEqual(await general.rest(), []);
    assert.equal(gateway.sessions, 0);
    assert.equal((await agent.send({ method: 'DELETE' })).status, 404);
    assert.equal((await agent.post(callText('x'))).status, 404);
    await server.until(() => server.notifications.some(({ method }) => method === 'notifications/cancelled'));
  })();
});

test(
  'sessions opened and ended leave nothing behind',
  withGateway({ config: { maxSessions: 50 } }, async ({ url, gateway, clock, events }) => {
    for (let n = 0; n < 60; n++) {
      const agent = await TestAgent.connect(url());
      await (await agent.listen()).next();
      assert.equal((await agent.send({ method: 'DELETE' })).status, 204);
    }
    assert.equal(gateway.sessions, 0);
    assert.equal(clock.delays.filter((delayMs) => delayMs === 1_800_000).length <= 1, true);
    const told = (type: string) => events.filter((event) => event.type === type).length;
    assert.equal(told('session_opened'), 60);
    assert.equal(told('session_closed'), 60);
  }),
);

test('an agent that leaves during initialize leaves no session, whether an answer comes or not', async () => {
  for (const answered of [false, true]) {
    let release = () => {};
    const upstream = createServer((req, res) => {
      req.on('data', (body: Buffer) => {
        const { id } = JSON.parse(body.toString());
        if (id === undefined) return void res.writeHead(202).end();
        release = () =>
          res.writeHead(200, JSON_TYPE).end(JSON.stringify({ jsonrpc: '2.0', id, result: RESULT }));
      });
    }).listen(0, '127.0.0.1');
    await once(upstream, 'listening');
    const { port } = upstream.address() as AddressInfo;
    const servers = [serverConfig('one', `http://127.0.0.1:${port}/mcp`)];
    await withGateway({ config: { servers, resumeMs: 60_000 } }, async ({ url, gateway, clock, event }) => {
      const asked = once(upstream, 'request');
      const drop = await begin(url(), { headers: POST_HEADERS, body: initializeText() });
      await asked;
      assert.equal(gateway.sessions, 1);
      drop();
      await clock.armed((delayMs) => delayMs === 60_000);
      const gone = event('session_closed');
      if (answered) release();
      else clock.advance(60_000);
      await gone;
      assert.equal(gateway.sessions, 0);
      upstream.closeAllConnections();
      upstream.close();
    })();
  }
});

test('a session serves the principal that began it, whatever token they bring, and nobody else', async () => {
  const answered = (text: string) =>
    Promise.resolve(readMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,${text}}`)));
  const backend: Backend = {
    handle: ({ message, caller }) =>
      answered(
        message.method === 'initialize'
          ? '"result":{"protocolVersion":"2025-11-25"}'
          : `"result":{"principal":"${caller.principal}"}`,
      ),
    notify: () => {},
    listen: () => {},
    leave: () => {},
    mirroredParams: async () => undefined,
    serverIds: () => ['one'],
  };
  const authenticate = ({ headers }: IncomingMessage) => {
    const principal = headers.authorization?.split(' ')[1];
    if (!principal)
      throw new GatewayError('unauthorized', 'Who?', { status: 401, challenge: 'Bearer realm="x"' });
    return { principal, token: undefined, tokenHash: undefined };
  };
  const config = { ...gatewayConfig([]), clock: new FakeClock(), emit: () => {}, authenticate };
  const http = await startHttp(config, backend);
  const agent = await TestAgent.connect(`${http.url}/mcp`, { headers: { authorization: 'Bearer ada 1' } });
  const status = async (authorization: string) => (await agent.post(callText('x'), { authorization })).status;
  assert.equal(await status('Bearer ada 2'), 200);
  assert.equal(await status('Bearer bob'), 404);
  for (const method of ['GET', 'DELETE'])
    assert.equal((await agent.send({ method, headers: { authorization: 'Bearer bob' } })).status, 404);
  const nobody = await agent.open(callText('x'), { authorization: '' });
  assert.equal(nobody.status, 401);
  assert.equal(nobody.headers['www-authenticate'], 'Bearer realm="x"');
  assert.equal(http.sessions, 1);
  await http.close();
});
