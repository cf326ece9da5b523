import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { answering, HttpUpstream } from '../support/http-upstream.js';
import { notice, RemoteOwner, refusalOf, request, scene, socketsIdle } from '../support/remote-link.js';

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

for (const host of ['127.0.0.1', '::1']) {
  test(`localhost finds a server that listens on ${host} only`, async (t) => {
    const { upstream, owner } = await scene(t, host);
    upstream.on('POST', '/mcp', answering({}));
    const link = await owner.open(`http://localhost:${upstream.port}/mcp`);
    await link.send(request(1, 'ping'));
    assert.equal(owner.delivered.length, 1);
    assert.equal(upstream.seen[0]?.headers.host, `localhost:${upstream.port}`);
  });
}

test('a server that is not there is named with its origin, and with nothing secret of its URL', async (t) => {
  const owner = new RemoteOwner(t);
  const gone = await HttpUpstream.start();
  const { port } = gone;
  await gone.stop();
  const link = await owner.open(`http://user:pass@127.0.0.1:${port}/mcp?key=abc`, { token: 'T1' });
  const error = await refusalOf(link.send(request(1, 'tools/call')));
  assert.equal(error.code, 'server_unavailable');
  assert.match(
    error.message,
    new RegExp(`"far" cannot be reached at http://127.0.0.1:${port}: .*ECONNREFUSED`),
  );
  assert.doesNotMatch(error.message, /abc|pass|T1|\/mcp/);
});

test('a name that does not resolve makes the server unavailable', async (t) => {
  const owner = new RemoteOwner(t);
  const link = await owner.open('http://no-such-host.invalid/mcp');
  assert.equal((await refusalOf(link.send(request(1, 'tools/call')))).code, 'server_unavailable');
});

test('a TLS handshake that fails makes the server unavailable', async (t) => {
  const { upstream, owner } = await scene(t);
  const link = await owner.open(`https://127.0.0.1:${upstream.port}/mcp`);
  const error = await refusalOf(link.send(request(1, 'tools/call')));
  assert.equal(error.code, 'server_unavailable');
});

test('a connection that is never established ends at the time limit and leaves no socket', async (t) => {
  const owner = new RemoteOwner(t);
  const silent = createServer();
  t.after(() => silent.close());
  const port = await listen(silent);
  const connected = once(silent, 'connection');
  const link = await owner.open(`https://127.0.0.1:${port}/mcp`);
  const refused = refusalOf(link.send(request(1, 'tools/call')));
  const [socket] = await connected;
  const closed = once(socket, 'close');
  socket.resume().on('error', () => {});
  owner.clock.advance(10_000);
  const error = await refused;
  assert.equal(error.code, 'server_unavailable');
  assert.match(error.message, /"far".*10000 ms/);
  await closed;
});

test('an abort ends the wait for a socket, and closing the pools ends the attempt', async (t) => {
  const owner = new RemoteOwner(t);
  const silent = createServer();
  t.after(() => silent.close());
  const port = await listen(silent);
  const connected = once(silent, 'connection');
  const link = await owner.open(`https://127.0.0.1:${port}/mcp`);
  const abort = new AbortController();
  const refused = refusalOf(link.send(request(1, 'tools/call'), abort.signal));
  const [socket] = await connected;
  abort.abort();
  assert.equal((await refused).code, 'cancelled');
  socket.resume().on('error', () => {});
  const closed = once(socket, 'close');
  await owner.origins.close();
  await closed;
});

test('a request aborted before its socket is open is never written', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', answering({}));
  const link = await owner.open(upstream.url());
  const abort = new AbortController();
  const refused = refusalOf(link.send(request(1, 'tools/call'), abort.signal));
  abort.abort();
  assert.equal((await refused).code, 'cancelled');
  await upstream.until(() => upstream.sockets.size > 0);
  for (let id = 2; id < 6; id++) await link.send(request(id, 'ping'));
  assert.equal(upstream.count('tools/call'), 0);
});

test('something that does not speak HTTP is an error of the protocol', async (t) => {
  const owner = new RemoteOwner(t);
  const other = createServer((socket) => {
    socket.on('error', () => {});
    socket.end('220 mail.example ESMTP\r\n');
  });
  t.after(() => other.close());
  const port = await listen(other);
  const link = await owner.open(`http://127.0.0.1:${port}/mcp`);
  const error = await refusalOf(link.send(request(1, 'tools/call')));
  assert.equal(error.code, 'server_protocol');
  assert.match(error.message, /"far"/);
});

for (const ending of ['reset', 'fin'] as const) {
  test(`a ${ending} behind a request on a new socket leaves the outcome unknown, and nothing is sent again`, async (t) => {
    const { upstream, owner } = await scene(t);
    upstream.on('POST', '/mcp', { ending });
    const link = await owner.open(upstream.url());
    for (const method of ['tools/call', 'tools/list']) {
      const error = await refusalOf(link.send(request(1, method)));
      assert.equal(error.code, 'outcome_unknown');
      assert.equal(upstream.count(method), 1);
    }
  });

  test(`a ${ending} on a reused socket: what may be repeated is sent once more, on a new socket`, async (t) => {
    const { upstream, owner } = await scene(t);
    upstream.on('POST', '/mcp', answering({}), { ending }, answering({}));
    const link = await owner.open(upstream.url());
    await link.send(request(1, 'tools/call'));
    await socketsIdle();
    await link.send(request(2, 'tools/list'));
    const [first, broken, again] = upstream.seen;
    assert.equal(upstream.seen.length, 3);
    assert.equal(broken?.port, first?.port);
    assert.notEqual(again?.port, first?.port);
    assert.equal(owner.delivered.length, 2);
  });

  test(`a ${ending} on a reused socket: a call is not sent again`, async (t) => {
    const { upstream, owner } = await scene(t);
    upstream.on('POST', '/mcp', answering({}), { ending }, answering({}));
    const link = await owner.open(upstream.url());
    await link.send(request(1, 'tools/list'));
    await socketsIdle();
    const error = await refusalOf(link.send(request(2, 'tools/call')));
    assert.equal(error.code, 'outcome_unknown');
    assert.equal(upstream.seen[1]?.port, upstream.seen[0]?.port);
    assert.equal(upstream.count('tools/call'), 1);
  });
}

test('a repeated request that breaks again is given up', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', answering({}), { ending: 'reset' });
  const link = await owner.open(upstream.url());
  await link.send(request(1, 'ping'));
  await socketsIdle();
  assert.equal((await refusalOf(link.send(request(2, 'ping')))).code, 'outcome_unknown');
  assert.equal(upstream.seen.length, 3);
});

test('a server that comes back on the same port is used at once', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', answering({}));
  const link = await owner.open(upstream.url());
  await Promise.all([1, 2, 3].map((id) => link.send(request(id, 'ping'))));
  for (const socket of upstream.sockets) socket.destroy();
  await upstream.until(() => upstream.sockets.size === 0);
  await Promise.all([4, 5, 6].map((id) => link.send(request(id, 'tools/list'))));
  assert.equal(owner.delivered.length, 6);
});

test('closing the pools ends every socket, and what is under way fails', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', answering({}), () => {});
  const link = await owner.open(upstream.url());
  await link.send(request(1, 'ping'));
  const refused = refusalOf(link.send(request(2, 'tools/call')));
  await upstream.received('tools/call');
  await owner.origins.close();
  assert.equal((await refused).code, 'outcome_unknown');
  await upstream.until(() => upstream.sockets.size === 0);
  assert.equal((await refusalOf(link.send(request(3, 'ping')))).code, 'server_unavailable');
  assert.equal((await refusalOf(link.send(notice('notifications/x')))).code, 'server_unavailable');
});

test('requests one after another do not open a socket each', async (t) => {
  const { upstream, owner } = await scene(t);
  upstream.on('POST', '/mcp', answering({}));
  const link = await owner.open(upstream.url());
  for (let id = 0; id < 20; id++) await link.send(request(id, 'ping'));
  assert.equal(new Set(upstream.seen.map((seen) => seen.port)).size <= 2, true);
});

test('idle sockets do not keep the process alive', async (t) => {
  const { upstream } = await scene(t);
  upstream.on('POST', '/mcp', answering({}));
  const script = fileURLToPath(new URL('../support/one-request.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', script, upstream.url()], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const said: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => said.push(chunk));
  const [code] = await once(child, 'close');
  assert.equal(code, 0);
  assert.equal(Buffer.concat(said).toString(), 'answered\n');
});
