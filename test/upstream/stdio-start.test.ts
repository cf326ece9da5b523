import assert from 'node:assert/strict';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { GatewayError } from '../../src/base/errors.js';
import { handlesBackTo, openHandles, openPeer, type PeerSetup } from '../support/stdio-harness.js';

function scratch(t: TestContext): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'sidegate-stdio-')));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function failure(t: TestContext, target: NonNullable<PeerSetup['target']>): Promise<GatewayError> {
  try {
    await openPeer(t, [], { target });
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    assert.equal(error.code, 'server_unavailable');
    assert.equal(error.details.serverId, 'files');
    assert.match(error.message, /^Server "files" could not be started: /);
    return error;
  }
  throw new Error('it started');
}

test('a command that does not exist is named, with what to do', async (t) => {
  const { message } = await failure(t, { command: 'no-such-command' });
  assert.match(message, /"no-such-command".* was not found\. Install it/);
});

test('a command that may not be executed is told apart', async (t) => {
  const script = join(scratch(t), 'server');
  writeFileSync(script, '#!/bin/sh\n', { mode: 0o600 });
  const { message } = await failure(t, { command: script });
  assert.match(message, /may not be executed.*chmod/);
});

test('a missing interpreter is a possible reason for a command that was not found', async (t) => {
  const script = join(scratch(t), 'server');
  writeFileSync(script, '#!/no/such/interpreter\n', { mode: 0o700 });
  assert.match((await failure(t, { command: script })).message, /interpreter/);
});

test('a missing working directory is not taken for a missing command', async (t) => {
  const cwd = join(scratch(t), 'gone');
  const { message } = await failure(t, { cwd });
  assert.match(message, /working directory ".*gone" does not exist/);
  assert.doesNotMatch(message, /command/);
});

test('a working directory that is a file is named as such', async (t) => {
  const cwd = join(scratch(t), 'file');
  writeFileSync(cwd, '');
  assert.match((await failure(t, { cwd })).message, /is not a directory/);
});

test('a start that Node itself refuses is the same kind of failure', async (t) => {
  await failure(t, { args: ['nul\0byte'] });
  await failure(t, { command: '' });
});

test('a failed start shows no argument and no variable, in its message or its cause', async (t) => {
  const secret = 'token-0123456789';
  for (const nul of ['', '\0']) {
    const target = { command: 'no-such-command', args: [secret + nul], env: { API_KEY: secret + nul } };
    const error = await failure(t, target);
    assert.ok(!error.message.includes(secret));
    assert.equal(error.cause, undefined);
  }
});

test('failed starts leave nothing open', { timeout: 10_000 }, async (t) => {
  const before = openHandles();
  for (let i = 0; i < 20; i++) await failure(t, { command: 'no-such-command' });
  await handlesBackTo(before);
});

test('a child runs in its configured directory', async (t) => {
  const cwd = scratch(t);
  const peer = await openPeer(t, [], { target: { cwd } });
  assert.equal(await peer.call(1, 'directory'), cwd);
});

for (const declared of [{}, { API_KEY: 'declared' }]) {
  const kind = 'API_KEY' in declared ? 'with' : 'without';
  test(`the gateway's secrets are not in the environment of a child ${kind} declared variables`, async (t) => {
    const env = { PATH: process.env['PATH'], LC_TIME: 'C', SIDEGATE_ADMIN_TOKEN: 'secret', NODE_OPTIONS: '' };
    const peer = await openPeer(t, [], { target: { env: declared }, options: { env } });
    assert.deepEqual(await peer.call(1, 'environment'), { PATH: env.PATH, LC_TIME: 'C', ...declared });
  });
}
