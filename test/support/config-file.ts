import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Environment } from '../../src/config/expand.js';
import { type LoadOptions, type LoadResult, loadConfig } from '../../src/config/load.js';
import type { GatewayConfig, RemoteTarget, ServerConfig } from '../../src/config/types.js';

/** A directory that is gone after the test. */
export async function temporaryDirectory(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'sidegate-test-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Path of a configuration file with that content; an object is written as JSON. */
export async function configFile(t: TestContext, content: object | string | Buffer): Promise<string> {
  const path = join(await temporaryDirectory(t), 'sidegate.json');
  const isText = typeof content === 'string' || Buffer.isBuffer(content);
  await writeFile(path, isText ? content : JSON.stringify(content));
  return path;
}

/** What is loaded from a file of that content, with nothing but `env` in the environment. */
export async function load(
  t: TestContext,
  content: object | string | Buffer,
  options: Omit<LoadOptions, 'source'> = {},
): Promise<LoadResult> {
  const path = await configFile(t, content);
  return loadConfig({ env: {}, ...options, source: { kind: 'file', path } });
}

export type Loaded = GatewayConfig & {
  readonly warnings: readonly string[];
  readonly off: readonly string[];
};

/** What becomes of these servers, all of which need nothing but their own entries. */
export async function loaded(t: TestContext, mcpServers: object, env: Environment = {}): Promise<Loaded> {
  const result = await load(t, { mcpServers }, { env });
  assert.ok(result.ok, JSON.stringify(result));
  return { ...result.config, warnings: result.warnings, off: result.off };
}

/** The one server of an entry without fault. */
export async function server(t: TestContext, entry: object, env: Environment = {}): Promise<ServerConfig> {
  const { servers, disabled } = await loaded(t, { x: entry }, env);
  assert.deepEqual(disabled, []);
  return servers[0] as ServerConfig;
}

/** The same where it has a URL. */
export async function remote(t: TestContext, entry: object, env: Environment = {}): Promise<RemoteTarget> {
  return (await server(t, entry, env)).target as RemoteTarget;
}

/** What is wrong with one entry. */
export async function problems(
  t: TestContext,
  entry: unknown,
  env: Environment = {},
): Promise<readonly string[]> {
  const { servers, disabled } = await loaded(t, { x: entry }, env);
  assert.deepEqual(servers, []);
  return disabled[0]?.problems ?? [];
}
