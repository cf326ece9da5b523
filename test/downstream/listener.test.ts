import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { startHttp } from '../../src/downstream/http.js';
import { ListenError } from '../../src/downstream/listen.js';
import { initializeText, POST_HEADERS, TestAgent, withGateway } from '../support/agent-gateway.js';
import { open } from '../support/agent-http.js';

test(
  'garbage on any path, by any method, gets a 4xx and harms nobody',
  withGateway({ ids: ['one', 'two'] }, async ({ url }) => {
    const paths = [
      '/',
      '/mcp',
      '/sse',
      '/messages',
      '/servers/one/mcp',
      '/servers/one/sse',
      '/servers/one/messages',
      '/servers/%ff/mcp',
      '/servers/one/messages?sessionId=x',
      '/x',
    ];
    for (const path of paths)
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'TRACE'])
        for (const body of method === 'GET' || method === 'HEAD' || method === 'TRACE'
          ? ['']
          : ['', '\0\xff{[', '{"a":1}']) {
          const answer = await open(url(path), { method, body, headers: { accept: 'text/html' } });
          assert.ok(answer.status >= 400 && answer.status < 500, `${method} ${path}: ${answer.status}`);
        }
    const agent = await TestAgent.connect(url('/servers/two/mcp'));
    assert.equal((await agent.post('{"jsonrpc":"2.0","id":1,"method":"tools/list"}')).status, 200);
  }),
);

test(
  'what is not HTTP at all closes its own socket only',
  withGateway({}, async ({ url, gateway }) => {
    for (const text of [
      '\0\0\0\0',
      'GET\r\n\r\n',
      'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n',
    ]) {
      const socket = connect(gateway.port, '127.0.0.1');
      socket.on('error', () => {});
      socket.resume().write(text);
      if (text.startsWith('\0')) socket.end();
      await once(socket, 'close');
    }
    await TestAgent.connect(url());
  }),
);

test(
  'with several servers the short path lists their endpoints',
  withGateway({ ids: ['one', 'a b/ü'] }, async ({ url }) => {
    const answer = await open(url('/mcp'), { method: 'POST', headers: POST_HEADERS, body: initializeText() });
    assert.equal(answer.status, 404);
    assert.deepEqual((await answer.json()).error?.data, {
      endpoints: ['/servers/one/mcp', '/servers/a%20b%2F%C3%BC/mcp'],
    });
    await TestAgent.connect(url('/servers/a%20b%2F%C3%BC/mcp'));
  }),
);

test(
  'a server that is not configured is named in a JSON-RPC error',
  withGateway({}, async ({ url }) => {
    const answer = await open(url('/servers/nobody/mcp'), {
      method: 'POST',
      headers: POST_HEADERS,
      body: initializeText(),
    });
    assert.equal(answer.status, 404);
    const { error } = await answer.json();
    assert.match(error?.message ?? '', /nobody/);
    assert.deepEqual(error?.data, { code: 'server_unknown', server: 'nobody' });
  }),
);

test(
  'a method that an endpoint has not is refused with those that it has',
  withGateway({}, async ({ url }) => {
    for (const [path, allow] of [
      ['/mcp', 'POST, GET, DELETE, OPTIONS'],
      ['/sse', 'GET, OPTIONS'],
      ['/messages', 'POST, OPTIONS'],
      ['/healthz', 'GET, HEAD'],
    ]) {
      const answer = await open(url(path), { method: 'PUT', body: '{}' });
      assert.equal(answer.status, 405);
      assert.equal(answer.headers.allow, allow);
    }
  }),
);

test(
  'pages of the operator are served beside the protocol',
  withGateway({}, async ({ url }) => {
    assert.equal((await open(url('/healthz'))).status, 200);
    const ready = await open(url('/readyz'), { method: 'HEAD' });
    assert.equal(ready.status, 200);
    assert.equal(await ready.text(), '');
  }),
);

test(
  'a page elsewhere reaches nothing, whatever it asks for',
  withGateway({ config: { allowedOrigins: ['https://app.example'] } }, async ({ url, server }) => {
    for (const [name, value] of [
      ['origin', 'http://evil.example'],
      ['origin', 'null'],
      ['host', 'evil.example'],
    ] as const)
      for (const method of ['GET', 'POST', 'OPTIONS', 'DELETE']) {
        const answer = await open(url(), {
          method,
          headers: { ...POST_HEADERS, [name]: value },
          body: initializeText(),
        });
        assert.equal(answer.status, 403, `${method} ${name}: ${value}`);
        assert.equal(answer.headers['access-control-allow-origin'], undefined);
      }
    assert.equal(server.count('initialize'), 0);
  }),
);

test(
  'an allowed page is answered by name, its preflight too, and never with credentials',
  withGateway({ config: { allowedOrigins: ['https://app.example'] } }, async ({ url }) => {
    for (const origin of ['https://app.example', 'http://localhost:5173', 'http://[::1]:80']) {
      const preflight = await open(url(), { method: 'OPTIONS', headers: { origin } });
      assert.equal(preflight.status, 204);
      assert.match(String(preflight.headers['access-control-allow-headers']), /Mcp-Session-Id/);
      assert.match(String(preflight.headers['access-control-allow-methods']), /DELETE/);
      const answer = await open(url(), {
        method: 'POST',
        headers: { ...POST_HEADERS, origin },
        body: initializeText(),
      });
      for (const { headers } of [preflight, answer]) {
        assert.equal(headers['access-control-allow-origin'], origin);
        assert.equal(headers.vary, 'Origin');
        assert.equal(headers['access-control-allow-credentials'], undefined);
      }
      assert.match(String(answer.headers['access-control-expose-headers']), /Mcp-Session-Id/);
    }
  }),
);

test(
  'a listener on an IPv6 address is reached by it',
  withGateway({ config: { host: '::1' } }, async ({ gateway, url }) => {
    assert.equal(gateway.url, `http://[::1]:${gateway.port}`);
    await TestAgent.connect(url());
  }),
);

test(
  'an idle socket is kept longer than clients keep theirs',
  withGateway({}, async ({ url }) => {
    const answer = await open(url('/healthz'), { headers: { connection: 'keep-alive' } });
    const seconds = Number(/timeout=(\d+)/.exec(String(answer.headers['keep-alive']))?.[1]);
    assert.ok(seconds >= 65, String(answer.headers['keep-alive']));
  }),
);

test(
  'a port that is taken is reported in one line',
  withGateway({}, async ({ gateway, clock }) => {
    const options = {
      host: '127.0.0.1',
      port: gateway.port,
      allowedHosts: [],
      allowedOrigins: [],
      maxSessions: 1,
      sessionIdleMs: 1_000,
      keepAliveMs: 1_000,
      resumeMs: 1_000,
      replayMaxBytes: 0,
      maxRequestBytes: 1_000,
      clock,
      emit: () => {},
    };
    const backend = {
      handle: () => Promise.reject(new Error('not reached')),
      notify: () => {},
      listen: () => {},
      leave: () => {},
      mirroredParams: async () => undefined,
      serverIds: () => [],
    };
    await assert.rejects(startHttp(options, backend), (error) => {
      assert.ok(error instanceof ListenError);
      assert.equal(error.code, 'EADDRINUSE');
      assert.match(error.message, new RegExp(`127\\.0\\.0\\.1:${gateway.port}[^\\n]+$`));
      return true;
    });
    await assert.rejects(startHttp({ ...options, host: '203.0.113.1', port: 0 }, backend), {
      code: 'EADDRNOTAVAIL',
    });
  }),
);
