import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { builtFolder } from '../support/built.js';

const PROGRAM = fileURLToPath(new URL('../support/log-process.mjs', import.meta.url));

/** Runs the logging process; `stderr` says what its parent does with that pipe. */
async function run(t: TestContext, act: string, stderr: 'read' | 'close' | 'ignore') {
  const child = spawn(process.execPath, [PROGRAM, builtFolder(), act], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const exit = once(child, 'exit');
  await once(child.stdout, 'data');
  if (stderr === 'close') {
    child.stderr.destroy();
    await once(child.stderr, 'close');
  }
  const log = stderr === 'read' ? text(child.stderr) : Promise.resolve('');
  const out = text(child.stdout);
  child.stdin.write('go\n');
  const [code, signal] = await exit;
  child.stderr.destroy();
  return { code, signal, out: await out, lines: (await log).split('\n').filter(Boolean) };
}

describe('a process whose stderr', () => {
  it('is never read goes on, and ends when it wants to', async (t) => {
    const { code, out } = await run(t, 'flood', 'ignore');
    assert.deepEqual([code, out], [0, 'flooded\nchildren killed\n']);
  });

  it('was closed by its parent goes on, without an error for each line', async (t) => {
    const { code, out } = await run(t, 'log on', 'close');
    assert.deepEqual([code, out], [0, 'still there\nchildren killed\n']);
  });

  it('was closed by its parent still ends at a fault of its own', async (t) => {
    for (const act of ['throw', 'reject']) {
      const { code, out } = await run(t, act, 'close');
      assert.deepEqual([code, out], [1, 'children killed\n'], act);
    }
  });
});

describe('a fault of our own', () => {
  it('is logged once, and ends the process with its children', async (t) => {
    for (const act of ['throw', 'reject']) {
      const { code, out, lines } = await run(t, act, 'read');
      assert.deepEqual([code, out, lines.length], [1, 'children killed\n', 1], act);
      const { level, msg, err } = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
      assert.deepEqual([level, msg], ['fatal', 'internal error']);
      assert.equal((err as { message: string }).message, 'the fault');
    }
  });
});
