// Runs the tests: all of test/**/*.test.ts, or the files given. Fails when a test fails, when none ran, and when they
// take longer than SIDEGATE_TEST_LIMIT_MS.

import { existsSync, readdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { run } from './processes.mjs';
import { asCommand, root } from './root.mjs';

const FILE_LIMIT_MS = 4 * 60_000;
const LIMIT_MS = Number(process.env.SIDEGATE_TEST_LIMIT_MS) || 13 * 60_000;

/** Runs them and resolves to `{ok, passed, failed, skipped}`. */
export async function unit(given = []) {
  const files = given.length > 0 ? given.map((file) => resolve(file)) : testFiles(join(root, 'test'));
  const missing = files.filter((file) => !existsSync(file));
  for (const file of missing) console.error(`No such test file: ${file}`);
  if (files.length === 0) console.error('There is no test file');
  if (missing.length > 0 || files.length === 0) return { ok: false, passed: 0, failed: 0, skipped: 0 };
  const options = ['--import', 'tsx', '--test', '--test-concurrency=2', '--test-reporter=spec'];
  const args = [...options, `--test-timeout=${FILE_LIMIT_MS}`, ...files];
  const { status, tail, timedOut } = await run(process.execPath, args, { cwd: root, limitMs: LIMIT_MS });
  if (timedOut) console.error(`The tests took longer than ${LIMIT_MS} ms and were ended`);
  const [passed, failed, skipped, cancelled] = ['pass', 'fail', 'skipped', 'cancelled'].map((name) =>
    count(tail, name),
  );
  if (status === 0 && passed === 0) console.error('No test ran');
  return { ok: status === 0 && passed > 0, passed, failed: failed + cancelled, skipped };
}

function testFiles(folder) {
  const names = readdirSync(folder, { recursive: true }).map(String);
  const ours = names.filter((name) => name.endsWith('.test.ts') && !name.includes('node_modules'));
  return ours.sort().map((name) => relative(root, join(folder, name)));
}

/** A number of the closing summary of Node's test runner; 0 where there is none. */
function count(output, name) {
  const lines = [...output.matchAll(new RegExp(`^\\W*${name} (\\d+)\\W*$`, 'gm'))];
  return Number(lines.at(-1)?.[1] ?? 0);
}

asCommand(import.meta.url, async (files) => {
  const { ok } = await unit(files);
  process.exitCode = ok ? 0 : 1;
});
