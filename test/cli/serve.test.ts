import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { EVERYTHING, entryOf, runCli, type ServingCli, serveCli } from '../support/cli.js';
import { configFile } from '../support/config-file.js';
import { startWitness } from '../support/witness.js';

const STUBBORN = fileURLToPath(new URL('../support/stubborn-server.mjs', import.meta.url));

async function agentAt(t: TestContext, url: string): Promise<Client> {
  const client = new Client({ name: 'agent', version: '1' });
  // The class lacks the exactness that this project asks of optional members.
  await client.connect(new StreamableHTTPClientTransport(new URL(url)) as Transport);
  t.after(() => client.close());
  return client;
}

/** A gateway with a call under way at a server that does not end by itself. */
async function busyGateway(t: TestContext, shutdownMs: number) {
  const witness = await startWitness(t);
  const env = { SIDEGATE_SHUTDOWN_MS: String(shutdownMs), SIDEGATE_PORT: '0' };
  const gateway = serveCli(t, ['--', process.execPath, STUBBORN, String(witness.port)], { env });
  const agent = await agentAt(t, `${await gateway.url()}/mcp`);
  const call = agent.callTool({ name: 'hang' }).then(
    () => 'answered',
    () => 'failed',
  );
  await witness.spoke();
  return { gateway, witness, call };
}

describe('the gateway as a program', () => {
  it('says where it listens, then where each server is, and serves them', async (t) => {
    const mcpServers = { all: entryOf(EVERYTHING), 'b c': entryOf(EVERYTHING), bad: { type: 'smoke' } };
    const config = await configFile(t, { mcpServers });
    const gateway = serveCli(t, ['--config', config, '--port', '0']);
    const url = await gateway.url();
    await gateway.stdoutLine(/b c/);
    assert.deepEqual(gateway.stdout, [
      `Sidegate listens on ${url}`,
      `all ${url}/servers/all/mcp`,
      `b c ${url}/servers/b%20c/mcp`,
    ]);
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/);
    const line = await gateway.stderrLine(/is disabled/);
    assert.match(
      (JSON.parse(line) as { msg: string }).msg,
      /server "bad" is disabled: mcpServers\.bad\.type: must/,
    );
    const agent = await agentAt(t, `${url}/servers/b%20c/mcp`);
    assert.ok((await agent.listTools()).tools.some(({ name }) => name === 'echo'));
    gateway.child.kill('SIGTERM');
    assert.deepEqual(await gateway.exit(), { code: 0, signal: null });
  });

  it('serves another gateway by its URL', async (t) => {
    const behind = serveCli(t, ['--port', '0']);
    const front = serveCli(t, [`${await behind.url()}/mcp`, '--port', '0', '--header', 'X-Key: k']);
    const agent = await agentAt(t, `${await front.url()}/mcp`);
    const answer = await agent.callTool({ name: 'echo', arguments: { message: 'far' } });
    assert.deepEqual(answer.content, [{ type: 'text', text: 'Echo: far' }]);
  });

  it('ends with 1 and one clear line when its port is taken', async (t) => {
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    t.after(() => holder.close());
    const { port } = holder.address() as AddressInfo;
    const { code, stdout, stderr } = await runCli(t, ['--port', String(port), '--log-level', 'error']);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, new RegExp(`^sidegate: Cannot listen on 127\\.0\\.0\\.1:${port}: [^\\n]+\\n$`));
  });

  it('ends with 0 within its limit at the first signal, though a call never ends', async (t) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const { gateway, witness, call } = await busyGateway(t, 1);
      gateway.child.kill(signal);
      assert.deepEqual(await gateway.exit(), { code: 0, signal: null }, signal);
      await witness.gone();
      assert.equal(await call, 'failed');
    }
  });

  it('ends at once at the second signal, and no child outlives it', async (t) => {
    for (const [signal, code] of [
      ['SIGTERM', 143],
      ['SIGINT', 130],
    ] as const) {
      const { gateway, witness } = await busyGateway(t, 3_600_000);
      gateway.child.kill('SIGTERM');
      await gateway.stderrLine(/"stopping"/);
      gateway.child.kill(signal);
      assert.deepEqual(await gateway.exit(), { code, signal: null });
      await witness.gone();
    }
  });

  it('goes on when the parent closes its stdout and its stderr', async (t) => {
    const gateway = serveCli(t, ['--port', '0', '--log-level', 'trace']);
    const url = await gateway.url();
    await gateway.stdoutLine(/everything/);
    gateway.child.stdout.destroy();
    gateway.child.stderr.destroy();
    const agent = await agentAt(t, `${url}/mcp`);
    for (let i = 0; i < 20; i++) await agent.callTool({ name: 'echo', arguments: { message: 'x' } });
    gateway.child.kill('SIGTERM');
    assert.deepEqual(await gateway.exit(), { code: 0, signal: null });
  });

  it('warns of a malformed TTL in the environment once, however many lists are asked for', async (t) => {
    const gateway = serveCli(t, ['--port', '0'], { env: { SIDEGATE_TOOLLIST_TTL_MS: 'soon' } });
    const agent = await agentAt(t, `${await gateway.url()}/mcp`);
    await agent.listTools();
    await agent.listPrompts();
    await agent.listResources();
    gateway.child.kill('SIGTERM');
    await gateway.exit();
    await gateway.stderrLine(/SIDEGATE_TOOLLIST_TTL_MS is \\"soon\\"/);
    assert.equal(gateway.stderr.filter((line) => line.includes('soon')).length, 1);
  });
});

describe('an interrupted command', () => {
  it('ends as the signal would have ended it, and takes its server along', async (t) => {
    const witness = await startWitness(t);
    const tools: ServingCli = serveCli(t, [
      'tools',
      '--',
      process.execPath,
      STUBBORN,
      String(witness.port),
      'mute',
    ]);
    await witness.arrived();
    tools.child.kill('SIGINT');
    assert.deepEqual(await tools.exit(), { code: 130, signal: null });
    await witness.gone();
  });
});
