import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { ConfigError, type GatewayError, McpManager, ServerError } from '../../src/index.js';
import {
  benchOf,
  Held,
  listChild,
  namesOf,
  openManager,
  remote,
  serve,
  tokenOf,
  toolList,
} from '../support/manager-bench.js';
import { Refusal, type ServerCall } from '../support/mcp-server.js';
import { CHILD } from '../support/stdio-harness.js';

const DONE = '{"content":[{"type":"text","text":"done"}]}';

test('a tool is called on the server, listed or not', async (t) => {
  const { manager, server } = await benchOf(t, () => toolList(['listed'], { ttlMs: 60_000 }), {
    server: { on: { 'tools/call': ({ message }) => JSON.stringify({ content: [], got: message.params }) } },
  });
  await manager.listTools('one');
  const { got } = (await manager.callTool('one', 'unlisted', { n: 1 })) as unknown as { got: unknown };
  assert.deepEqual(got, { name: 'unlisted', arguments: { n: 1 } });
  assert.equal(server.count('tools/call'), 1);
});

test('a tool’s own failure is a result, an error of the server is thrown as it came', async (t) => {
  const answers: (() => string)[] = [
    () => '{"content":[],"isError":true}',
    () => {
      throw new Refusal(-32042, 'Sign in first', { url: 'https://example.test' });
    },
  ];
  const { manager } = await benchOf(t, () => toolList([]), {
    server: { on: { 'tools/call': () => (answers.shift() as () => string)() } },
  });
  assert.equal((await manager.callTool('one', 'a')).isError, true);
  await assert.rejects(manager.callTool('one', 'a'), (failure: ServerError) => {
    assert.ok(failure instanceof ServerError);
    assert.deepEqual(
      { ...failure, message: failure.message },
      {
        name: 'ServerError',
        serverId: 'one',
        code: -32042,
        message: 'Sign in first',
        data: { url: 'https://example.test' },
      },
    );
    return true;
  });
});

test('resources and prompts are read, and a server tells of itself', async (t) => {
  const server = await serve(t, {
    on: {
      'resources/read': ({ message }) =>
        JSON.stringify({ contents: [{ uri: message.params.uri, text: 'x' }] }),
      'prompts/get': ({ message }) =>
        JSON.stringify({ messages: [], description: message.params.arguments.a }),
    },
  });
  const { manager } = openManager(t, { one: remote(server.url) });
  const { contents } = await manager.readResource('one', 'file:///a');
  assert.deepEqual(contents, [{ uri: 'file:///a', text: 'x' }]);
  assert.equal((await manager.getPrompt('one', 'p', { a: 'b' })).description, 'b');
  const info = await manager.serverInfo('one');
  assert.equal(info.serverInfo.name, 'scripted');
  assert.equal(server.count('initialize'), 1);
});

test('any request can be made; its result is whatever the server said', async (t) => {
  const server = await serve(t, { on: { 'vendor/odd': () => 'null' } });
  const { manager } = openManager(t, { one: remote(server.url) });
  assert.equal(await manager.request('one', 'vendor/odd', { deep: [1] }), null);
  await assert.rejects(manager.request('one', 'vendor/none'), { name: 'ServerError', code: -32601 });
});

test('progress of a call is told in order, with or without a token of the user’s own', async (t) => {
  const report = (call: ServerCall) => {
    const { progressToken } = call.message.params._meta;
    for (const progress of [1, 2]) call.notify('notifications/progress', { progressToken, progress });
    return DONE;
  };
  const { manager } = await benchOf(t, () => toolList([]), { server: { on: { 'tools/call': report } } });
  const seen: unknown[] = [];
  const onProgress = (params: unknown) => seen.push(params);
  await manager.callTool('one', 'a', {}, { onProgress });
  const params = { name: 'a', _meta: { progressToken: 'mine', trace: 'kept' } };
  await manager.request('one', 'tools/call', params, { onProgress });
  assert.deepEqual(seen, [
    { progressToken: 0, progress: 1 },
    { progressToken: 0, progress: 2 },
    { progressToken: 'mine', progress: 1 },
    { progressToken: 'mine', progress: 2 },
  ]);
});

test('calls at one time hear of their own progress only', async (t) => {
  const held = new Held<void>();
  const { manager } = await benchOf(t, () => toolList([]), {
    server: {
      on: {
        'tools/call': async (call) => {
          await held.next();
          const { _meta, name } = call.message.params;
          call.notify('notifications/progress', { progressToken: _meta.progressToken, message: name });
          return DONE;
        },
      },
    },
  });
  const names = ['a', 'b', 'c'];
  const heard = new Map<string, unknown[]>(names.map((name) => [name, []]));
  const calls = names.map((name) =>
    manager.callTool('one', name, {}, { onProgress: (params) => heard.get(name)?.push(params) }),
  );
  await held.received(3);
  for (const _ of names) await held.answer();
  await Promise.all(calls);
  for (const name of names) assert.deepEqual(heard.get(name), [{ progressToken: 0, message: name }]);
});

test('what onProgress throws ends that call with it, and the server is told', async (t) => {
  const { manager, server } = await benchOf(t, () => toolList(['a']), {
    server: {
      on: {
        'tools/call': (call) => {
          call.notify('notifications/progress', {
            progressToken: call.message.params._meta.progressToken,
            progress: 1,
          });
          return new Promise<string>(() => {});
        },
      },
    },
  });
  const fault = new Error('a fault of the user’s');
  const onProgress = () => {
    throw fault;
  };
  await assert.rejects(manager.callTool('one', 'a', {}, { onProgress }), fault);
  await server.until(() => server.count('notifications/cancelled') === 1);
  assert.deepEqual(namesOf(await manager.listTools('one')), ['a']);
});

test('a signal that is aborted already reaches nobody, whatever is cached', async (t) => {
  const { manager, server } = await benchOf(t, () => toolList(['a'], { ttlMs: 60_000 }));
  await manager.listTools('one');
  const signal = AbortSignal.abort(new Error('why'));
  const token = () => {
    throw new Error('not to be asked for');
  };
  for (const use of [
    () => manager.listTools('one', { signal, token }),
    () => manager.callTool('one', 'a', {}, { signal, token }),
    () => manager.serverInfo('one', { signal, token }),
  ])
    await assert.rejects(use(), (failure: GatewayError) => {
      assert.deepEqual([failure.code, failure.details.serverId], ['cancelled', 'one']);
      assert.equal((failure.cause as Error).message, 'why');
      return true;
    });
  assert.equal(server.count('tools/call'), 0);
});

test('a signal aborted within a call ends it at once, and the server is told', async (t) => {
  const held = new Held<string>();
  const { manager, server } = await benchOf(t, () => toolList([]), {
    server: { on: { 'tools/call': held.next } },
  });
  const aborter = new AbortController();
  const call = manager.callTool('one', 'a', {}, { signal: aborter.signal });
  await held.received();
  aborter.abort();
  await assert.rejects(call, { code: 'cancelled', message: /tools\/call.*"one"/ });
  await server.until(() => server.count('notifications/cancelled') === 1);
});

test('a signal ends the wait for a connection and for a token', async (t) => {
  const { manager } = openManager(t, { hung: { command: process.execPath, args: [CHILD] } });
  const token = () => new Promise<string>(() => {});
  for (const use of [
    (signal: AbortSignal) => manager.serverInfo('hung', { signal }),
    (signal: AbortSignal) => manager.listTools('hung', { signal }),
    (signal: AbortSignal) => manager.callTool('hung', 'a', {}, { signal }),
    (signal: AbortSignal) => manager.callTool('hung', 'a', {}, { signal, token }),
  ]) {
    const aborter = new AbortController();
    const refused = assert.rejects(use(aborter.signal), { code: 'cancelled' });
    await new Promise(setImmediate);
    aborter.abort();
    await refused;
  }
});

test('a request given up while its token was awaited reaches nobody', async (t) => {
  const { manager, server } = await benchOf(t, () => toolList([]));
  const tokens = new Held<string>();
  const aborter = new AbortController();
  const refused = assert.rejects(
    manager.callTool('one', 'a', {}, { token: tokens.next, signal: aborter.signal }),
    { code: 'cancelled' },
  );
  await tokens.received();
  aborter.abort();
  await refused;
  await tokens.answer('late');
  await manager.listTools('one');
  assert.equal(server.count('initialize'), 1);
});

test('a signal ends a walk in the middle', async (t) => {
  const pages = new Held<string>();
  const { manager } = await benchOf(t, pages.next);
  const aborter = new AbortController();
  const refused = assert.rejects(manager.listTools('one', { signal: aborter.signal }), { code: 'cancelled' });
  await pages.answer(toolList(['a'], { nextCursor: '1' }));
  await pages.received(2);
  aborter.abort();
  await refused;
});

test('a call given up before its connection stands is never sent', async (t) => {
  const held = new Held<string>();
  const { manager, server } = await benchOf(t, () => toolList([]), {
    server: { on: { 'tools/call': () => DONE, 'tools/list': held.next } },
  });
  const aborter = new AbortController();
  const call = manager.callTool('one', 'pay', {}, { signal: aborter.signal });
  aborter.abort();
  await assert.rejects(call, { code: 'cancelled' });
  await manager.callTool('one', 'other');
  assert.equal(server.count('tools/call'), 1);
});

test('one signal serves any number of requests, and nothing of theirs stays on it', async (t) => {
  const { manager } = await benchOf(t, () => toolList(['a'], { ttlMs: 0 }), {
    server: { on: { 'tools/call': () => DONE } },
  });
  let listeners = 0;
  const { signal } = new AbortController();
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args: unknown[]) => {
    listeners++;
    addEventListener.apply(signal, args as never);
  };
  signal.removeEventListener = (...args: unknown[]) => {
    listeners--;
    removeEventListener.apply(signal, args as never);
  };
  await Promise.all(Array.from({ length: 50 }, () => manager.callTool('one', 'a', {}, { signal })));
  await manager.listTools('one', { signal });
  assert.equal(listeners, 0);
});

test('a token is asked of its source once for each method, and goes with every request of it', async (t) => {
  const tokens: (string | undefined)[] = [];
  const { manager } = await benchOf(t, (call) => {
    tokens.push(tokenOf(call));
    return toolList(['a'], { nextCursor: call.message.params?.cursor ? undefined : '1', ttlMs: 0 });
  });
  let asked = 0;
  const token = async () => `token-${++asked}`;
  for (let i = 0; i < 2; i++) await manager.listTools('one', { token });
  assert.deepEqual(tokens, ['token-1', 'token-1', 'token-2', 'token-2']);
});

test('what one token subscribed to stays with it, whoever else asks', async (t) => {
  const subscribed: string[] = [];
  const server = await serve(t, {
    on: {
      'resources/subscribe': (call) => {
        subscribed.push(`${tokenOf(call)} ${call.message.params.uri}`);
        return '{}';
      },
      'resources/unsubscribe': () => '{}',
    },
  });
  const { manager } = openManager(t, { one: remote(server.url) });
  await manager.request('one', 'resources/subscribe', { uri: 'file:///a' }, { token: 'A' });
  await manager.listTools('one', { token: 'B' });
  await manager.listTools('one', { token: 'A', fresh: true });
  assert.deepEqual(subscribed, ['A file:///a']);
  assert.equal(server.count('resources/unsubscribe'), 0);
});

test('a server of its own for each session keeps the sessions of two tokens apart', async (t) => {
  const { manager, server } = await benchOf(t, () => toolList(['a'], { ttlMs: 0 }), {
    entry: { isolate: 'session' },
  });
  for (const token of ['A', 'B', 'A', 'B']) await manager.listTools('one', { token });
  assert.equal(server.count('initialize'), 2);
  assert.equal(server.openSessions, 2);
});

test('an unknown and a disabled server are errors that say what is wrong, before any token is asked for', async (t) => {
  const { manager } = openManager(t, { one: listChild(), broken: { url: 'no url' } });
  const token = () => assert.fail('asked for a token');
  await assert.rejects(manager.listTools('onee', { token }), { code: 'server_unknown', message: /"one"/ });
  await assert.rejects(manager.callTool('broken', 'a', {}, { token }), {
    code: 'server_disabled',
    message: /"broken".*not an absolute URL/,
  });
  assert.deepEqual(manager.serverIds, ['one', 'broken']);
});

test('a result of another shape than the method’s is an error that names the server', async (t) => {
  const { manager } = await benchOf(t, () => toolList([]), {
    server: { on: { 'tools/call': () => '[]', 'resources/read': () => 'null', 'prompts/get': () => '7' } },
  });
  for (const use of [
    () => manager.callTool('one', 'a'),
    () => manager.readResource('one', 'file:///a'),
    () => manager.getPrompt('one', 'a'),
  ])
    await assert.rejects(use(), { code: 'server_protocol', message: /"one"/ });
});

test('arguments that are no JSON are the caller’s mistake, and nothing is sent', async (t) => {
  const { manager, server } = await benchOf(t, () => toolList([]));
  await assert.rejects(manager.callTool('one', 'a', { n: 1n }), TypeError);
  assert.equal(server.count('initialize'), 0);
});

test('a wrong general setting is thrown by the constructor, a warning is an event', () => {
  assert.throws(() => new McpManager({ mcpServers: {}, port: 'abc' }), ConfigError);
  const events: unknown[] = [];
  new McpManager({ mcpServers: {}, prot: 1 }, { emit: (event) => events.push(event), env: {} });
  assert.match(JSON.stringify(events), /"warning".*prot.*did you mean port/);
});

test('values are taken from the environment that was given', () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: what a configuration holds
  const config = { mcpServers: { one: { command: '${PROGRAM}' } } };
  const manager = new McpManager(config, { env: {} });
  assert.throws(() => new McpManager(config, { env: { SIDEGATE_PORT: 'abc' } }), ConfigError);
  return assert.rejects(manager.serverInfo('one'), { code: 'server_disabled', message: /PROGRAM/ });
});

test('a listener that fails costs nobody an answer, and is a warning of Node’s', async (t) => {
  const { manager, server } = await benchOf(t, () => toolList(['a'], { ttlMs: 60_000 }), {
    surroundings: {
      emit: () => {
        throw new Error('sink');
      },
    },
  });
  const warnings: Error[] = [];
  const warned = (warning: Error) => warnings.push(warning);
  process.on('warning', warned);
  t.after(() => process.off('warning', warned));
  for (const name of ['event', 'list_changed'] as const)
    manager.on(name, () => {
      throw new Error(`listener of ${name}`);
    });
  const failed = once(process, 'warning');
  assert.deepEqual(namesOf(await manager.listTools('one')), ['a']);
  await server.until(() => server.openStreams === 1);
  server.broadcast('notifications/tools/list_changed');
  await failed;
  await manager.listTools('one', { fresh: true });
  assert.ok(warnings.some(({ message }) => message.includes('listener of event')));
});
