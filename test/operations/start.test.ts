import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, test } from 'node:test';
import { Clone, outcomeOf } from '../support/clone.js';

let clone: Clone;

beforeEach(() => {
  clone = new Clone();
});

afterEach(() => clone.remove());

test('npm start hands its arguments to the gateway, whose output is all there is on stdout', async () => {
  clone.write('src/cli/main.ts', "console.log(process.argv.slice(2).join(' '));\nexport {};\n");
  const { status, stdout } = await outcomeOf(
    clone.start('npm', ['start', '--silent', '--', '--port', '0', '--config', 'a b.json']),
  );
  assert.deepEqual({ status, stdout }, { status: 0, stdout: '--port 0 --config a b.json\n' });
});

test('the exit status of the gateway is the exit status of npm start', async () => {
  clone.write('src/cli/main.ts', 'process.exitCode = 3;\nexport {};\n');
  assert.equal((await outcomeOf(clone.start('npm', ['start', '--silent']))).status, 3);
});

test('a signal to npm reaches the gateway, which has the time it needs to end', {
  timeout: 60_000,
}, async () => {
  const lines = [
    'const running = setInterval(() => {}, 2 ** 30);',
    "process.once('SIGTERM', () => {",
    "  console.log('drained');",
    '  clearInterval(running);',
    '});',
    "console.log('ready');",
    'export {};',
  ];
  clone.write('src/cli/main.ts', lines.join('\n'));
  const npm = clone.start('npm', ['start', '--silent']);
  assert.ok(npm.stdout);
  const output = createInterface(npm.stdout);
  assert.deepEqual(await once(output, 'line'), ['ready']);
  npm.kill('SIGTERM');
  assert.deepEqual(await once(output, 'line'), ['drained']);
  await once(npm, 'close');
});

test('a gateway that cannot be built is not started', async () => {
  clone.write('src/cli/main.ts', "console.log('started');\nexport const count: number = 'one';\n");
  const { status, stdout, stderr } = await outcomeOf(clone.start('npm', ['start', '--silent']));
  assert.notEqual(status, 0);
  assert.equal(stdout, '');
  assert.match(stderr, /The build failed/);
});
