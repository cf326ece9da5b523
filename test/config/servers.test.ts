// biome-ignore-all lint/suspicious/noTemplateCurlyInString: such texts are what is tested
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { StdioTarget } from '../../src/config/types.js';
import { load, loaded, problems, remote, server } from '../support/config-file.js';

describe('a server in the configuration', () => {
  it('is a command with every default in place', async (t) => {
    assert.deepEqual(await server(t, { command: 'run' }), {
      id: 'x',
      target: { kind: 'stdio', command: 'run', args: [], env: {}, cwd: undefined },
      isolate: 'auto',
      era: 'auto',
      toolListTtlMs: undefined,
      sharePublic: undefined,
      connectTimeoutMs: 30_000,
      requestTimeoutMs: 300_000,
      maxRequestTimeoutMs: 3_600_000,
      maxConnections: 64,
    });
  });

  it('is a URL with every default in place', async (t) => {
    assert.deepEqual(await remote(t, { url: 'https://a.example/mcp' }), {
      kind: 'remote',
      url: 'https://a.example/mcp',
      transport: 'auto',
      headers: {},
      forwardAuthorization: true,
    });
  });

  it('may have every option', async (t) => {
    const entry = {
      ...{ type: 'sse', url: 'http://a.example/sse', headers: { 'X-Key': 'k' }, forwardAuthorization: false },
      ...{ isolate: 'session', era: 'Modern', toolListTtlMs: 5, sharePublic: true, connectTimeoutMs: 1 },
      ...{ requestTimeoutMs: 2, maxRequestTimeoutMs: 3, maxConnections: 4, disabled: false, enabled: true },
    };
    assert.deepEqual(await server(t, entry), {
      ...{ id: 'x', isolate: 'session', era: 'modern', toolListTtlMs: 5 },
      ...{ sharePublic: true, connectTimeoutMs: 1 },
      ...{ requestTimeoutMs: 2, maxRequestTimeoutMs: 3, maxConnections: 4 },
      target: {
        ...{ kind: 'remote', url: 'http://a.example/sse', transport: 'sse', headers: { 'X-Key': 'k' } },
        forwardAuthorization: false,
      },
    });
  });

  it('may be listed under `servers`, as other tools write it', async (t) => {
    const result = await load(t, { servers: { a: { command: 'run' }, b: {} } });
    assert.ok(result.ok);
    assert.deepEqual(
      result.config.servers.map(({ id }) => id),
      ['a'],
    );
    assert.deepEqual(result.config.disabled[0]?.problems, ['servers.b: needs a `command` or a `url`']);
  });

  it('keeps its place in the order of the file', async (t) => {
    const { servers } = await loaded(t, { z: { command: 'z' }, '7': { command: '7' }, a: { command: 'a' } });
    assert.deepEqual(new Set(servers.map(({ id }) => id)), new Set(['z', '7', 'a']));
    const text = '{"mcpServers":{"z":{"command":"z"},"7":{"command":"7"},"a":{"command":"a"}}}';
    const result = await load(t, text);
    assert.ok(result.ok);
    assert.deepEqual(
      result.config.servers.map(({ id }) => id),
      ['z', '7', 'a'],
    );
  });

  it('may name its transport in every usual way', async (t) => {
    const http = ['http', 'streamable-http', 'streamableHttp', 'streamable_http', 'http-stream', 'HTTP'];
    for (const type of http)
      assert.equal((await remote(t, { type, url: 'http://a.example' })).transport, 'http', type);
    for (const transport of ['sse', 'http+sse', 'SSE'])
      assert.equal((await remote(t, { transport, url: 'http://a.example' })).transport, 'sse', transport);
    assert.equal((await server(t, { type: 'stdio', command: 'run' })).target.kind, 'stdio');
  });

  it('may name its URL in every usual way', async (t) => {
    for (const key of ['url', 'serverUrl', 'httpUrl'])
      assert.equal((await remote(t, { [key]: 'http://a.example/x' })).url, 'http://a.example/x');
  });

  it('alone is disabled by a transport that nobody knows', async (t) => {
    const { servers, disabled } = await loaded(t, {
      good: { type: 'streamable-http', url: 'http://a.example' },
      bad: { type: 'carrier-pigeon', url: 'http://a.example' },
      also: { command: 'run' },
    });
    assert.deepEqual(
      servers.map(({ id }) => id),
      ['good', 'also'],
    );
    assert.deepEqual(
      disabled.map(({ id }) => id),
      ['bad'],
    );
    assert.match(disabled[0]?.problems[0] ?? '', /^mcpServers\.bad\.type: must be stdio, http .*sse/);
  });

  it('must say what it is', async (t) => {
    const url = 'http://a.example';
    for (const [entry, why] of [
      [{}, /needs a `command` or a `url`/],
      [{ command: 'run', url }, /has a `command` and a URL/],
      [{ url, serverUrl: url }, /has url and serverUrl: give one of them/],
      [{ type: 'stdio', url }, /is of type stdio and has no `command`/],
      [{ type: 'sse', command: 'run' }, /is of a remote type and has no `url`/],
      [{ type: 'http', transport: 'sse', url }, /transport: contradicts `type`/],
      ['npx server', /must be an object/],
      [[], /must be an object/],
      [null, /must be an object/],
      [{ command: '' }, /command: must not be empty/],
      [{ command: 7 }, /command: must be a text/],
      [{ command: 'run', args: 'a b' }, /args: must be a list of texts/],
      [{ command: 'run', args: [['a']] }, /args\[0\]: must be a text/],
      [{ command: 'run', env: ['A=1'] }, /env: must be an object of name to text/],
      [{ command: 'run', env: { 'A=B': 'x' } }, /env\["A=B"\]: is not a variable name/],
      [{ url: 'a.example/mcp' }, /url: is not an absolute URL/],
      [{ url: 'ftp://a.example/mcp' }, /url: must be an http or https URL/],
    ] as const)
      assert.match((await problems(t, entry)).join('\n'), why, JSON.stringify(entry));
  });

  it('may be both a command and a URL when its type says which', async (t) => {
    const both = { command: 'run', url: 'http://a.example' };
    assert.equal((await server(t, { ...both, type: 'stdio' })).target.kind, 'stdio');
    assert.equal((await server(t, { ...both, type: 'http' })).target.kind, 'remote');
  });

  it('may write numbers and truth values without quotes where a child needs text', async (t) => {
    const { target } = await server(t, { command: 'run', args: ['--port', 80, true], env: { PORT: 80 } });
    const { args, env } = target as StdioTarget;
    assert.deepEqual({ args, env }, { args: ['--port', '80', 'true'], env: { PORT: '80' } });
  });

  it('may leave a member out by null', async (t) => {
    const { target } = await server(t, { command: 'run', url: null, cwd: null, headers: null });
    assert.equal((target as StdioTarget).cwd, undefined);
  });

  it('is left out altogether when it is switched off, whatever else is wrong with it', async (t) => {
    const { servers, disabled, off } = await loaded(
      t,
      {
        a: { disabled: true, url: '${NONE}', nonsense: 1 },
        b: { enabled: false },
        c: { disabled: '${OFF}', command: 'run' },
        d: { disabled: 'false', enabled: 'true', command: 'run' },
      },
      { OFF: 'TRUE' },
    );
    assert.deepEqual([servers.map(({ id }) => id), disabled, off], [['d'], [], ['a', 'b', 'c']]);
  });

  it('tells every problem at once, each with its path', async (t) => {
    const entry = {
      ...{ command: 'run', args: ['${A}', 'ok', '${input:b}'], env: { K: '${C}', L: [] }, isolate: 'none' },
      ...{ connectTimeoutMs: 0, maxConnections: 'many', requestTimeoutMs: 10, maxRequestTimeoutMs: 5 },
    };
    assert.deepEqual((await problems(t, entry)).toSorted(), [
      'mcpServers.x.args[0]: variable A is not set',
      'mcpServers.x.args[2]: `${input:…}` is not supported: write ${NAME} or ${NAME:-default}',
      'mcpServers.x.connectTimeoutMs: must be a whole number from 1 to 2147483647',
      'mcpServers.x.env.K: variable C is not set',
      'mcpServers.x.env.L: must be a text',
      'mcpServers.x.isolate: must be one of auto, token, principal, session',
      'mcpServers.x.maxConnections: must be a whole number from 1 to 1000000',
      'mcpServers.x.maxRequestTimeoutMs: must not be below `requestTimeoutMs`',
    ]);
  });

  it('takes no delay that a timer cannot wait', async (t) => {
    assert.equal(
      (await server(t, { command: 'run', requestTimeoutMs: 2 ** 31 - 1 })).requestTimeoutMs,
      2 ** 31 - 1,
    );
    assert.match(
      (await problems(t, { command: 'run', requestTimeoutMs: 2 ** 31 })).join(),
      /requestTimeoutMs: must be a whole number/,
    );
  });

  it('has an overall limit that is never below its request timeout by default', async (t) => {
    const { maxRequestTimeoutMs } = await server(t, { command: 'run', requestTimeoutMs: 7_200_000 });
    assert.equal(maxRequestTimeoutMs, 7_200_000);
  });

  it('keeps nothing by a negative TTL', async (t) => {
    assert.equal((await server(t, { command: 'run', toolListTtlMs: -1 })).toolListTtlMs, 0);
  });

  it('has an id that can stand in a path and in a key', async (t) => {
    const run = { command: 'run' };
    const bad = {
      '': run,
      'a#b': run,
      'a/b': run,
      'a\nb': run,
      '..': run,
      'a\u007f': run,
      ['x'.repeat(129)]: run,
    };
    const { servers, disabled } = await loaded(t, { ...bad, 'ok.1-ü _': run });
    assert.deepEqual(
      servers.map(({ id }) => id),
      ['ok.1-ü _'],
    );
    assert.deepEqual(new Set(disabled.map(({ id }) => id)), new Set(Object.keys(bad)));
    for (const { problems: lines } of disabled) {
      assert.match(lines[0] ?? '', /a server id must not/);
      assert.ok(!lines.join('').includes('\n'));
    }
  });

  it('names no member twice', async (t) => {
    const result = await load(t, '{"mcpServers":{"x":{"command":"a","command":"b"},"y":{"command":"c"}}}');
    assert.ok(result.ok);
    assert.deepEqual(
      result.config.servers.map(({ id }) => id),
      ['y'],
    );
    assert.deepEqual(result.config.disabled[0]?.problems, ['mcpServers.x: Member "command" is given twice']);
  });

  it('is warned of members that nobody knows, with the likely name', async (t) => {
    const { warnings } = await loaded(t, {
      x: { command: 'run', arg: [], timeOut: 3, autoApprove: [], requestTimeout: 1, 'b\u0007d': 1 },
    });
    assert.deepEqual(warnings, [
      'mcpServers.x.arg: is unknown and ignored (did you mean args?)',
      'mcpServers.x.timeOut: is unknown and ignored',
      'mcpServers.x.autoApprove: is unknown and ignored',
      'mcpServers.x.requestTimeout: is unknown and ignored (did you mean requestTimeoutMs?)',
      'mcpServers.x["b\\u0007d"]: is unknown and ignored',
    ]);
  });

  it('is warned of members that mean nothing for its kind', async (t) => {
    const { warnings } = await loaded(t, {
      a: { command: 'run', headers: { A: 'b' } },
      b: { url: 'http://a.example', env: { A: 'b' } },
    });
    assert.deepEqual(warnings, [
      'mcpServers.a.headers: has no meaning for a stdio server',
      'mcpServers.b.env: has no meaning for a remote server',
    ]);
  });
});
