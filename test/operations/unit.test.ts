import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, test } from 'node:test';
import { Clone } from '../support/clone.js';

let clone: Clone;

beforeEach(() => {
  clone = new Clone();
});

afterEach(() => clone.remove());

const testFile = (name: string, body: string): string =>
  `import { test } from 'node:test';\ntest('${name}', async () => {\n  ${body}\n});\n`;

test('all test files are found and counted by the closing lines of the runner', async () => {
  clone.write('test/a.test.ts', testFile('first', ''));
  clone.write('test/deep/er/b.test.ts', testFile('second', ''));
  clone.write('test/deep/helper.ts', 'throw new Error("not a test");\n');
  const { status, stdout } = await clone.run('unit.mjs');
  assert.equal(status, 0, stdout);
  assert.match(stdout, /tests 2\b/);
  assert.match(stdout, /pass 2\b/);
});

test('one failing test fails the run', async () => {
  clone.write('test/a.test.ts', testFile('good', ''));
  clone.write('test/b.test.ts', testFile('bad', "throw new Error('no');"));
  const { status, stdout } = await clone.run('unit.mjs');
  assert.equal(status, 1);
  assert.match(stdout, /fail 1\b/);
});

test('only the files that are given are run, and one that does not exist fails the run', async () => {
  clone.write('test/a.test.ts', testFile('good', ''));
  clone.write('test/b.test.ts', testFile('bad', "throw new Error('no');"));
  assert.equal((await clone.run('unit.mjs', ['test/a.test.ts'])).status, 0);
  const missing = await clone.run('unit.mjs', ['test/a.test.ts', 'test/c.test.ts']);
  assert.equal(missing.status, 1);
  assert.match(missing.stderr, /No such test file: .*c\.test\.ts/);
});

test('a run without a test fails', async () => {
  clone.write('test/helper.ts', 'export {};\n');
  const { status, stderr } = await clone.run('unit.mjs');
  assert.equal(status, 1);
  assert.match(stderr, /There is no test file/);
});

test('a run in which every test is skipped fails', async () => {
  clone.write('test/a.test.ts', testFile('good', '').replace("'good',", "'good', { skip: true },"));
  const { status, stderr } = await clone.run('unit.mjs');
  assert.equal(status, 1);
  assert.match(stderr, /No test ran/);
});

test('a run that passes its time limit is ended with all its processes', { timeout: 60_000 }, async (t) => {
  const listener = createServer().listen(0, '127.0.0.1');
  t.after(() => listener.close());
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  const grandchild = `require('node:net').connect(${port}, '127.0.0.1')`;
  const lines = [
    "import { spawn } from 'node:child_process';",
    `spawn(process.execPath, ['-e', ${JSON.stringify(grandchild)}], { stdio: 'ignore' });`,
  ];
  clone.write(
    'test/a.test.ts',
    `${lines.join('\n')}\n${testFile('endless', 'await new Promise(() => {});')}`,
  );
  const run = clone.run('unit.mjs', [], { SIDEGATE_TEST_LIMIT_MS: '6000' });
  const [socket] = (await once(listener, 'connection')) as [Socket];
  await once(socket.on('error', () => {}).resume(), 'close');
  const { status, stderr } = await run;
  assert.equal(status, 1);
  assert.match(stderr, /took longer than 6000 ms/);
});
