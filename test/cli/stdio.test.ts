import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EVERYTHING, entryOf, runCli, serveCli } from '../support/cli.js';
import { configFile } from '../support/config-file.js';

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 'first',
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'agent', version: '1' } },
};

describe('the gateway on stdin and stdout', () => {
  it('writes nothing but the protocol to stdout, whatever it logs', async (t) => {
    const gateway = serveCli(t, ['--stdio', '--log-level', 'trace', '--', ...EVERYTHING]);
    const send = (message: object) => gateway.child.stdin.write(`${JSON.stringify(message)}\n`);
    send(INITIALIZE);
    await gateway.stdoutLine(/"protocolVersion":"2025-06-18"/);
    send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    send({ jsonrpc: '2.0', id: 2, method: 'tools/list' });
    await gateway.stdoutLine(/"tools":/);
    await gateway.stderrLine(/server_connected/);
    gateway.child.stdin.end();
    assert.deepEqual(await gateway.exit(), { code: 0, signal: null });
    for (const line of gateway.stdout)
      assert.equal((JSON.parse(line) as { jsonrpc?: string }).jsonrpc, '2.0', line);
  });

  it('answers an agent that says everything at once and closes its side', async (t) => {
    const said = [
      INITIALIZE,
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', id: 2, method: 'tools/list' },
    ];
    const input = said.map((message) => `${JSON.stringify(message)}\n`).join('');
    const { code, stdout } = await runCli(t, ['--stdio', '--', ...EVERYTHING], { input });
    assert.equal(code, 0);
    const listed = stdout.split('\n').find((line) => line.includes('"id":2'));
    assert.match(listed ?? stdout, /"tools":\[/);
  });

  it('ends with 0 at a signal', async (t) => {
    const gateway = serveCli(t, ['--stdio']);
    gateway.child.stdin.write(`${JSON.stringify(INITIALIZE)}\n`);
    await gateway.stdoutLine(/"id":"first"/);
    gateway.child.kill('SIGTERM');
    assert.deepEqual(await gateway.exit(), { code: 0, signal: null });
  });

  it('wants one server that can be used, and says so on stderr alone', async (t) => {
    const config = await configFile(t, { mcpServers: { a: entryOf(EVERYTHING), b: {} } });
    const run = (...more: string[]) =>
      runCli(t, ['--stdio', '--log-level', 'error', '--config', config, ...more]);
    const unnamed = await run();
    assert.deepEqual([unnamed.code, unnamed.stdout], [2, '']);
    assert.match(unnamed.stderr, /Say which server by --server: there are "a", "b"/);
    const unknown = await run('--server', 'c');
    assert.deepEqual([unknown.code, unknown.stdout], [2, '']);
    const disabled = await run('--server', 'b');
    assert.deepEqual([disabled.code, disabled.stdout], [1, '']);
    assert.match(disabled.stderr, /"b" is disabled: mcpServers\.b: needs a `command` or a `url`/);
  });
});
