import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import {
  callText,
  gate,
  initializeText,
  notificationText,
  POST_HEADERS,
  TestAgent,
  toolOf,
  withGateway,
} from '../support/agent-gateway.js';
import { open } from '../support/agent-http.js';
import { Refusal, type ServerCall } from '../support/mcp-server.js';

const text = (value: string) => JSON.stringify({ content: [{ type: 'text', text: value }] });

test(
  'initialize is answered with the revision that both sides speak, and a session id',
  withGateway({}, async ({ url }) => {
    for (const [asked, answered] of [
      ['2024-11-05', '2024-11-05'],
      ['2025-06-18', '2025-06-18'],
      ['2025-11-25', '2025-11-25'],
      ['2099-01-01', '2025-11-25'],
    ]) {
      const answer = await open(url(), {
        method: 'POST',
        headers: POST_HEADERS,
        body: initializeText({ revision: asked ?? '' }, '"i"'),
      });
      assert.match(String(answer.headers['mcp-session-id']), /^[\x21-\x7e]{20,}$/);
      const { id, result } = await answer.json();
      assert.equal(id, 'i');
      assert.equal(result.protocolVersion, answered);
      assert.equal(result.serverInfo.name, 'scripted');
    }
  }),
);

test(
  'a server is told what the agent declared, and no more',
  withGateway({}, async ({ url, server }) => {
    await TestAgent.connect(url());
    await TestAgent.connect(url(), { capabilities: { elicitation: {}, 'x/y': { z: 1 } } });
    assert.deepEqual(
      server.initialized.map((message) => message.params.capabilities),
      [{}, { elicitation: {}, 'x/y': { z: 1 } }],
    );
  }),
);

test(
  'initialize with the id of a lost session begins a fresh one',
  withGateway({}, async ({ url }) => {
    const stale = await open(url(), {
      method: 'POST',
      headers: { ...POST_HEADERS, 'mcp-session-id': 'gone' },
      body: initializeText(),
    });
    assert.equal(stale.status, 200);
    assert.notEqual(stale.headers['mcp-session-id'], 'gone');
  }),
);

test(
  'each initialize begins a session of its own',
  withGateway({}, async ({ url, gateway }) => {
    const agent = await TestAgent.connect(url());
    const again = await agent.open(initializeText());
    assert.notEqual(again.headers['mcp-session-id'], agent.session);
    assert.equal(gateway.sessions, 2);
    assert.equal((await agent.post(callText('x'))).status, 200);
  }),
);

test(
  'an unknown session is 404, a missing one 400, and both name the request',
  withGateway({ ids: ['one', 'two'] }, async ({ url }) => {
    const agent = await TestAgent.connect(url('/servers/one/mcp'));
    const unknown = await agent.open(callText('x', '"q"'), { 'mcp-session-id': 'nobody' });
    assert.equal(unknown.status, 404);
    assert.equal((await unknown.json()).id, 'q');
    const elsewhere = new TestAgent(url('/servers/two/mcp'), agent.headers);
    assert.equal((await elsewhere.post(callText('x'))).status, 404);
    const without = new TestAgent(url('/servers/one/mcp'), {});
    assert.equal((await without.post(callText('x'))).status, 400);
    assert.equal((await without.send({ headers: { accept: 'text/event-stream' } })).status, 400);
    assert.equal((await without.send({ method: 'DELETE' })).status, 400);
    assert.equal(
      (await agent.send({ method: 'DELETE', headers: { 'mcp-session-id': 'nobody' } })).status,
      404,
    );
  }),
);

test(
  'no session remains where the server refused',
  withGateway(
    { ids: [], config: { servers: [], disabled: [{ id: 'bad', problems: ['url: missing'] }] } },
    async ({ url, gateway }) => {
      const answer = await open(url(), { method: 'POST', headers: POST_HEADERS, body: initializeText() });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers['mcp-session-id'], undefined);
      const { error } = await answer.json();
      assert.match(error?.message ?? '', /bad/);
      assert.deepEqual(error?.data, { code: 'server_disabled', server: 'bad' });
      assert.equal(gateway.sessions, 0);
    },
  ),
);

test(
  'every spelling of an id comes back as it was, several at once',
  withGateway(
    { server: { on: { 'tools/call': ({ message }) => text(toolOf(message)) } } },
    async ({ url }) => {
      const agent = await TestAgent.connect(url());
      const ids = ['0', '"0"', '1', '"1"', '"abc"', '9007199254740993', '-7', '"\\u00e4"', '"ü€"', '1.0'];
      const answers = await Promise.all(ids.map(async (id, n) => (await agent.call(`tool-${n}`, id)).text()));
      for (const [n, id] of ids.entries()) {
        assert.ok(answers[n]?.includes(`"id":${id}`), `${id}: ${answers[n]}`);
        assert.ok(answers[n]?.includes(`tool-${n}`), `${id}: ${answers[n]}`);
      }
    },
  ),
);

test('two requests with one id at a time each get their own answer', async () => {
  const first = gate();
  const options = {
    server: {
      on: {
        'tools/call': async ({ message }: ServerCall) => {
          if (toolOf(message) === 'first') await first.opened;
          else first.open();
          return text(toolOf(message));
        },
      },
    },
  };
  await withGateway(options, async ({ url, server }) => {
    const agent = await TestAgent.connect(url());
    const slow = agent.call('first', '1');
    await server.until(() => server.count('tools/call') === 1);
    const quick = await (await agent.call('second', '1')).text();
    assert.ok(quick.includes('second'), quick);
    assert.ok((await (await slow).text()).includes('first'));
  })();
});

test('a result keeps every byte of the server, but for the id', async () => {
  const result =
    '{"structuredContent":{"n":2512292042121000001,"x":1e400,"z":-0,"q":0.1e-7}, "content" : [] ,"_meta":{"a/b":null}}';
  await withGateway({ server: { on: { 'tools/call': () => result } } }, async ({ url }) => {
    const agent = await TestAgent.connect(url());
    assert.ok((await agent.post(callText('x'))).text.includes(`"result":${result}`));
  })();
});

test('an error of the server passes unchanged, in-band', async () => {
  const refuse = () => {
    throw new Refusal(-32002, 'No such thing', { uri: 'a:b', extra: [1] });
  };
  await withGateway({ server: { on: { 'resources/read': refuse } } }, async ({ url }) => {
    const agent = await TestAgent.connect(url());
    const read = await agent.post(
      '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b"}}',
    );
    assert.equal(read.status, 200);
    assert.deepEqual(JSON.parse(read.text).error, {
      code: -32002,
      message: 'No such thing',
      data: { uri: 'a:b', extra: [1] },
    });
    const unknown = await agent.post('{"jsonrpc":"2.0","id":2,"method":"foo/bar"}');
    assert.equal(unknown.status, 200);
    assert.equal(JSON.parse(unknown.text).error.code, -32601);
  })();
});

test(
  'what is no proper message is refused with the code that says why, and never reaches the server',
  withGateway({ config: { maxRequestBytes: 1_000 } }, async ({ url, server }) => {
    const agent = await TestAgent.connect(url());
    const refusals: [body: string, status: number, code: number][] = [
      ['{"jsonrpc":"2.0","id":1,"method":', 400, -32700],
      ['', 400, -32700],
      ['\u{1F600}', 400, -32700],
      ['7', 400, -32600],
      ['{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600],
      ['{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, -32600],
      ['{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', 400, -32600],
      ['[]', 400, -32600],
      [`[${callText('x')},${callText('y', '2')}]`, 400, -32600],
      [`[${initializeText()}]`, 400, -32600],
      [callText('x'.repeat(2_000)), 413, -32600],
    ];
    for (const [body, status, code] of refusals) {
      const answer = await agent.post(body);
      assert.equal(answer.status, status, body);
      assert.equal(JSON.parse(answer.text).error.code, code, body);
    }
    assert.equal(server.count('tools/call'), 0);
    assert.equal(server.count('ping'), 0);
  }),
);

test(
  'media types decide by their essence',
  withGateway({}, async ({ url }) => {
    const agent = await TestAgent.connect(url());
    const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
    const status = async (headers: Record<string, string>) => (await agent.post(list, headers)).status;
    assert.equal(await status({ 'content-type': 'Application/JSON; charset=utf-8' }), 200);
    assert.equal(await status({ 'content-type': 'text/plain' }), 415);
    assert.equal(await status({ 'content-encoding': 'gzip' }), 415);
    assert.equal(await status({ accept: '*/*' }), 200);
    assert.equal(await status({ accept: 'application/json' }), 200);
    assert.equal(await status({ accept: 'text/html' }), 406);
    assert.equal((await agent.send({ headers: { accept: 'application/json' } })).status, 406);
  }),
);

test(
  'an agent that takes nothing but event streams gets its answer as one',
  withGateway({}, async ({ url }) => {
    const agent = await TestAgent.connect(url());
    const answer = await agent.open('{"jsonrpc":"2.0","id":1,"method":"tools/list"}', {
      accept: 'text/event-stream',
    });
    assert.equal(answer.headers['content-type'], 'text/event-stream');
    assert.deepEqual(await answer.rest(), [{ jsonrpc: '2.0', id: 1, result: { tools: [] } }]);
  }),
);

test(
  'a revision that is none of this era is refused',
  withGateway({}, async ({ url }) => {
    const agent = await TestAgent.connect(url());
    const status = async (revision: string) =>
      (await agent.post(notificationText('notifications/x'), { 'mcp-protocol-version': revision })).status;
    assert.equal(await status('2025-06-18'), 202);
    assert.equal(await status('2099-01-01'), 400);
    assert.equal(await status('latest'), 400);
  }),
);

test(
  'notifications and responses are accepted without a body, and the handshake stays ours',
  withGateway({}, async ({ url, server }) => {
    const agent = await TestAgent.connect(url());
    for (const body of [
      notificationText('notifications/roots/list_changed'),
      '{"jsonrpc":"2.0","id":77,"result":{}}',
      '{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}',
    ])
      assert.deepEqual(await agent.post(body), { status: 202, text: '' });
    await server.until(() =>
      server.notifications.some(({ method }) => method === 'notifications/roots/list_changed'),
    );
    assert.equal(
      server.notifications.filter(({ method }) => method === 'notifications/initialized').length,
      1,
    );
  }),
);

test(
  'a batch of the one revision that has them is answered whole',
  withGateway(
    { server: { on: { 'tools/call': ({ message }) => text(toolOf(message)) } } },
    async ({ url, server }) => {
      const agent = await TestAgent.connect(url(), { revision: '2025-03-26' });
      const batch = `[${callText('a', '1')}, ${notificationText('notifications/x')},${callText('b', '"1"')}]`;
      const answer = await agent.open(batch);
      assert.equal(answer.headers['content-type'], 'application/json');
      const answers = JSON.parse(await answer.text()) as {
        id: unknown;
        result: { content: { text: string }[] };
      }[];
      const byId = new Map(answers.map(({ id, result }) => [id, result.content[0]?.text]));
      assert.deepEqual([byId.get(1), byId.get('1')], ['a', 'b']);
      await server.until(() => server.notifications.some(({ method }) => method === 'notifications/x'));
      assert.equal((await agent.post(`[${notificationText('notifications/x')}]`)).status, 202);
      assert.equal((await agent.post('[]')).status, 400);
      assert.equal((await agent.post(`[${callText('c')},${initializeText()}]`)).status, 400);
      assert.equal(server.count('tools/call'), 2);
    },
  ),
);

test(
  'an agent that wants it fresh is answered by the server',
  withGateway({}, async ({ url, server }) => {
    const agent = await TestAgent.connect(url());
    const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
    await agent.post(list);
    await agent.post(list);
    assert.equal(server.count('tools/list'), 1);
    await agent.post(list, { 'cache-control': 'max-age=0, no-cache' });
    assert.equal(server.count('tools/list'), 2);
  }),
);

test('a session outlives a change of the token that its requests bring', async () => {
  const seen: (string | undefined)[] = [];
  const options = {
    server: {
      on: {
        'tools/call': ({ headers }: ServerCall) => {
          seen.push(headers.authorization);
          return text('done');
        },
      },
    },
  };
  await withGateway(options, async ({ url }) => {
    const agent = await TestAgent.connect(url(), { headers: { authorization: 'Bearer T1' } });
    await agent.post(callText('x'));
    agent.headers['authorization'] = 'bearer T2';
    await agent.post(callText('x'));
    assert.deepEqual(seen, ['Bearer T1', 'Bearer T2']);
  })();
});

test(
  'a body above the limit is refused in full words, and its sender is not cut off in the middle',
  withGateway({ config: { maxRequestBytes: 10_000 } }, async ({ gateway, clock }) => {
    const head =
      'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n';
    for (const goesOn of [true, false]) {
      const socket = connect(gateway.port, '127.0.0.1');
      let closed = false;
      socket.on('end', () => {
        closed = true;
      });
      socket.write(`${head}${'x'.repeat(20_000)}`);
      const [answer] = (await once(socket, 'data')) as [Buffer];
      assert.match(answer.toString(), /^HTTP\/1\.1 413 .*\r\nConnection: close\r\n.*10000 bytes/s);
      await (await open(`${gateway.url}/healthz`)).text();
      assert.equal(closed, false);
      const ended = once(socket, 'end');
      if (goesOn) socket.write('x'.repeat(79_999));
      else clock.advance(2_000);
      await ended;
      socket.destroy();
    }
  }),
);
