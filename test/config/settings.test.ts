// biome-ignore-all lint/suspicious/noTemplateCurlyInString: such texts are what is tested
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { EMBEDDED_SERVER_ID } from '../../src/config/embedded.js';
import { findSource } from '../../src/config/find.js';
import { ConfigError, loadConfig, parseConfig } from '../../src/config/load.js';
import type { GatewayConfig } from '../../src/config/types.js';
import { load, temporaryDirectory } from '../support/config-file.js';

const DEFAULTS = {
  host: '127.0.0.1',
  port: 8808,
  logLevel: 'info',
  allowedHosts: [],
  allowedOrigins: [],
  toolListTtlMs: 60_000,
  maxTtlMs: 900_000,
  cacheMaxBytes: 67_108_864,
  cacheMaxEntries: 10_000,
  maxConnections: 256,
  connectionIdleMs: 300_000,
  maxSessions: 10_000,
  sessionIdleMs: 1_800_000,
  keepAliveMs: 15_000,
  resumeMs: 60_000,
  replayMaxBytes: 1_048_576,
  hints: 'modern',
  parkMs: 300_000,
  maxParkedCalls: 1_000,
  maxRequestBytes: 16_777_216,
  maxAnswerBytes: 134_217_728,
  shutdownMs: 10_000,
} satisfies Omit<GatewayConfig, 'servers' | 'disabled'>;

describe('the general settings', () => {
  it('have their defaults', async (t) => {
    const result = await load(t, { mcpServers: {} });
    assert.ok(result.ok);
    assert.deepEqual(result.config, { ...DEFAULTS, servers: [], disabled: [] });
    assert.deepEqual(result.warnings, ['mcpServers: holds no server']);
  });

  it('come from the file, numbers as texts too', async (t) => {
    const file = { host: '[::1]', port: '${P}', allowedHosts: ['a'], allowedOrigins: 'x, y', maxTtlMs: 5 };
    const result = await load(t, { ...file, mcpServers: {} }, { env: { P: '1234' } });
    assert.ok(result.ok);
    const { host, port, allowedHosts, allowedOrigins, maxTtlMs } = result.config;
    assert.deepEqual([host, port, maxTtlMs], ['::1', 1234, 5]);
    assert.deepEqual([allowedHosts, allowedOrigins], [['a'], ['x', 'y']]);
  });

  it('follow flag, environment, file and default, in this order', async (t) => {
    const file = { port: 1, host: 'file', logLevel: 'error', mcpServers: {} };
    const env = {
      SIDEGATE_PORT: '2',
      SIDEGATE_HOST: 'env',
      SIDEGATE_ALLOWED_HOSTS: 'a,b',
      SIDEGATE_MAX_SESSIONS: '',
    };
    const result = await load(t, file, { env, flags: { port: '3' } });
    assert.ok(result.ok);
    const { port, host, logLevel, allowedHosts, maxSessions } = result.config;
    assert.deepEqual([port, host, logLevel, maxSessions], [3, 'env', 'error', 10_000]);
    assert.deepEqual(allowedHosts, ['a', 'b']);
  });

  it('end the start-up where one is wrong, with all that are named where they stand', async (t) => {
    const file = {
      ...{ port: 70_000, host: '', logLevel: 'loud', cacheMaxBytes: '${NONE}', allowedOrigins: ['a', 1] },
      ...{ mcpServers: {}, resumeMs: -1, maxTtlMs: [] },
    };
    const env = { SIDEGATE_MAX_REQUEST_BYTES: '1 MB', SIDEGATE_HOST: '' };
    const result = await load(t, file, { env, flags: { shutdownMs: 'soon' } });
    assert.ok(!result.ok);
    assert.deepEqual(result.problems.toSorted(), [
      '--shutdown-ms: must be a whole number from 0 to 2147483647',
      'SIDEGATE_MAX_REQUEST_BYTES: must be a whole number from 1 to 9007199254740991',
      'allowedOrigins[1]: must be a text',
      'cacheMaxBytes: variable NONE is not set',
      'host: must not be empty',
      'logLevel: must be one of silent, fatal, error, warn, info, debug, trace',
      'maxTtlMs: must be a whole number from -2147483647 to 2147483647',
      'port: must be a whole number from 0 to 65535',
      'resumeMs: must be a whole number from 0 to 2147483647',
    ]);
  });

  it('are not looked at in the file where the environment or a flag says otherwise', async (t) => {
    const file = { port: '${NONE}', host: 7, mcpServers: {} };
    const result = await load(t, file, { env: { SIDEGATE_PORT: '1' }, flags: { host: 'h' } });
    assert.ok(result.ok);
  });

  it('are warned of where nobody knows them, with the likely name', async (t) => {
    const file = { $schema: 'x', prot: 1, inputs: [], mcpServers: { a: { command: 'run' } } };
    const env = { SIDEGATE_PROT: '1', SIDEGATE_TOKEN: 'x', SIDEGATE_TOOL_LIST_TTL_MS: '1', PORT: '2' };
    const { warnings } = await load(t, file, { env });
    assert.deepEqual(warnings, [
      'SIDEGATE_PROT: is unknown and ignored (did you mean SIDEGATE_PORT?)',
      'SIDEGATE_TOOL_LIST_TTL_MS: is unknown and ignored (did you mean SIDEGATE_TOOLLIST_TTL_MS?)',
      'prot: is unknown and ignored (did you mean port?)',
      'inputs: is unknown and ignored',
    ]);
  });

  it('need servers beside them', async (t) => {
    const result = await load(t, { mcpservers: {} });
    assert.ok(!result.ok);
    assert.deepEqual(result.problems, ['mcpServers: is missing']);
    assert.deepEqual(result.warnings, ['mcpservers: is unknown and ignored (did you mean mcpServers?)']);
  });

  it('leave the TTL of lists to the moment of the listing, where the environment has one', async (t) => {
    const result = await load(
      t,
      { toolListTtlMs: 7, mcpServers: {} },
      { env: { SIDEGATE_TOOLLIST_TTL_MS: '9' } },
    );
    assert.ok(result.ok);
    assert.equal(result.config.toolListTtlMs, 7);
  });
});

describe('a configuration', () => {
  it('that is no JSON is refused by file, line and column', async (t) => {
    const result = await load(t, '{\n  "mcpServers": {,}\n}');
    assert.ok(!result.ok);
    assert.deepEqual(result.problems, [`${result.origin}:2:18: Expected a member name`]);
  });

  it('that cannot be read is refused by name', async (t) => {
    const path = join(await temporaryDirectory(t), 'none.json');
    const missing = await loadConfig({ env: {}, source: { kind: 'file', path } });
    assert.ok(!missing.ok);
    assert.deepEqual(missing.problems, [`${path}: there is no such file`]);
    await mkdir(path);
    const folder = await loadConfig({ env: {}, source: { kind: 'file', path } });
    assert.ok(!folder.ok);
    assert.deepEqual(folder.problems, [`${path}: cannot be read (EISDIR)`]);
  });

  it('is found by flag, environment and working directory, in this order', async (t) => {
    const cwd = await temporaryDirectory(t);
    const find = (flag: string | undefined, env: object) => findSource(flag, env as NodeJS.ProcessEnv, cwd);
    assert.deepEqual(await find(undefined, {}), { kind: 'embedded' });
    await writeFile(join(cwd, 'sidegate.json'), '{}');
    assert.deepEqual(await find(undefined, {}), { kind: 'file', path: join(cwd, 'sidegate.json') });
    assert.deepEqual(await find(undefined, { SIDEGATE_CONFIG: 'e.json' }), {
      kind: 'file',
      path: join(cwd, 'e.json'),
    });
    assert.deepEqual(await find('/f.json', { SIDEGATE_CONFIG: 'e.json' }), { kind: 'file', path: '/f.json' });
    assert.deepEqual(await find(undefined, { SIDEGATE_CONFIG: ' ' }), {
      kind: 'file',
      path: join(cwd, 'sidegate.json'),
    });
  });

  it('may be embedded: the bundled server that shows everything', async () => {
    const result = await loadConfig({ env: {}, source: { kind: 'embedded' } });
    assert.ok(result.ok);
    assert.deepEqual(
      result.config.servers.map(({ id }) => id),
      [EMBEDDED_SERVER_ID],
    );
    const { target } = result.config.servers[0] ?? {};
    assert.ok(target?.kind === 'stdio');
    assert.equal(target.command, process.execPath);
    assert.match(target.args[0] ?? '', /server-everything.dist.index\.js$/);
  });

  it('may be one URL, with variables in it and its headers', async () => {
    const source = { kind: 'remote', url: 'http://${H}/mcp', headers: { A: '${T}' } } as const;
    const result = await loadConfig({ env: { H: 'a.example', T: 't' }, source });
    assert.ok(result.ok);
    const { target } = result.config.servers[0] ?? {};
    assert.ok(target?.kind === 'remote');
    assert.deepEqual([target.url, target.headers], ['http://a.example/mcp', { A: 't' }]);
    const without = await loadConfig({ env: { H: 'a.example' }, source });
    assert.ok(without.ok);
    assert.match(without.config.disabled[0]?.problems[0] ?? '', /headers\.A: variable T is not set/);
  });

  it('may be one command, which the shell has expanded already', async () => {
    const source = { kind: 'command', command: 'sh', args: ['-c', 'echo ${HOME}'] } as const;
    const result = await loadConfig({ env: {}, source });
    assert.ok(result.ok);
    const { target } = result.config.servers[0] ?? {};
    assert.ok(target?.kind === 'stdio');
    assert.deepEqual(target.args, ['-c', 'echo ${HOME}']);
  });

  it('of one server is called after its host or its program', async () => {
    const idOf = async (...[command = '', ...args]: string[]) => {
      const result = await loadConfig({ env: {}, source: { kind: 'command', command, args } });
      assert.ok(result.ok && result.config.servers.length === 1);
      return result.config.servers[0]?.id;
    };
    assert.equal(await idOf('npx', '-y', '@modelcontextprotocol/server-files@1.2.0', '/tmp'), 'server-files');
    assert.equal(await idOf('/usr/bin/node', './dist/my server.js'), 'my-server');
    assert.equal(await idOf('C:\\bin\\thing.exe'), 'thing');
    assert.equal(await idOf('..'), 'server');
    const result = await loadConfig({
      env: {},
      source: { kind: 'remote', url: 'https://a.example/x', headers: {} },
    });
    assert.ok(result.ok);
    assert.equal(result.config.servers[0]?.id, 'a.example');
  });

  it('may be handed over as an object, and is refused with all its problems', () => {
    const { config } = parseConfig({ port: 1, mcpServers: { a: { command: '${C}' } } }, { C: 'run' });
    assert.equal(config.port, 1);
    assert.equal(config.servers[0]?.target.kind, 'stdio');
    assert.throws(
      () => parseConfig({ port: -1, host: '', mcpServers: {} }, {}),
      (error) => error instanceof ConfigError && error.problems.length === 2,
    );
    assert.throws(() => parseConfig({ mcpServers: 7 }, {}), ConfigError);
  });
});
