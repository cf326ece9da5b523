// `npm test`: everything a change must pass, from a fresh clone on. A failing step does not hide the next one's
// findings, except that nothing runs on a broken build. The last line counts the tests.

import { join } from 'node:path';
import { run } from './processes.mjs';
import { ready } from './ready.mjs';
import { root } from './root.mjs';
import { unit } from './unit.mjs';

const CHECK_LIMIT_MS = 2 * 60_000;
const CONFORMANCE_LIMIT_MS = 6 * 60_000;

/** Runs a script of an installed package by this Node. */
async function step(name, script, args, limitMs) {
  console.log(`\n# ${name}`);
  const { status, timedOut } = await run(process.execPath, [...script, ...args], { cwd: root, limitMs });
  if (timedOut) console.error(`${name}: took longer than ${limitMs} ms and was ended`);
  return status === 0 && !timedOut ? [] : [name];
}

try {
  ready();
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
const inPackages = (path) => [join(root, 'node_modules', path)];
const failed = [
  ...(await step('biome', inPackages('@biomejs/biome/bin/biome'), ['check', '.'], CHECK_LIMIT_MS)),
  ...(await step('types', inPackages('typescript/bin/tsc'), ['-p', 'test/tsconfig.json'], CHECK_LIMIT_MS)),
  ...(await step('conformance', ['--import', 'tsx'], ['test/conformance/run.ts'], CONFORMANCE_LIMIT_MS)),
  ...(await step('clients', ['--import', 'tsx'], ['test/conformance/run-client.ts'], CONFORMANCE_LIMIT_MS)),
];
console.log('\n# tests');
const tests = await unit();
if (!tests.ok) failed.push('tests');
for (const name of failed) console.log(`FAILED: ${name}`);
// A failed step counts, so that this line never reads as a success.
const failures = Math.max(tests.failed, failed.length);
console.log(`${tests.passed} passed, ${failures} failed, ${tests.skipped} skipped`);
process.exitCode = failed.length > 0 ? 1 : 0;
