/**
 * The client under test with a gateway in between, started afresh: what the referee is given as the client.
 *
 *   node --import tsx test/conformance/client/through-gateway.ts [--legacy] URL
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startGateway } from '../runner/gateway.js';
import { runToEnd } from '../runner/processes.js';

const args = process.argv.slice(2);
const upstream = args.pop();
if (!upstream) throw new Error('usage: through-gateway.ts [--legacy] URL');
const folder = await mkdtemp(join(tmpdir(), 'sidegate-client-'));
const gateway = await startGateway([upstream, '--port', '0'], join(folder, 'gateway.log'));
try {
  const client = ['--import', 'tsx', 'test/conformance/client/main.ts', ...args, gateway.url];
  process.exitCode = (await runToEnd(process.execPath, client, { timeoutMs: 25_000 })) ?? 1;
} finally {
  await gateway.close();
  await rm(folder, { recursive: true });
}
