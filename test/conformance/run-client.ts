/**
 * Runs the client scenarios of the official suite that make sense through a gateway, with official SDK clients,
 * directly and with the built gateway in between, and compares the two: they judge what the gateway sends to a server.
 *
 *   node --import tsx test/conformance/run-client.ts
 *
 * Exit status 1 when a scenario fails or any check is worse through the gateway.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Run, setbacks } from './runner/checks.js';
import { openReferee } from './runner/referee.js';
import { legLine, setbackLine, tally } from './runner/report.js';

/** What judges the handshake, the messages or their headers. Signing in is between agent and server. */
const SCENARIOS = {
  '2025-11-25': ['initialize', 'tools_call', 'elicitation-sep1034-client-defaults', 'sse-retry'],
  '2026-07-28': [
    'tools_call',
    'request-metadata',
    'sep-2322-client-request-state',
    'http-standard-headers',
    'http-custom-headers',
    'http-invalid-tool-headers',
    'json-schema-ref-no-deref',
    'json-schema-2020-12-preservation',
  ],
} as const;

const referee = await openReferee();
const outputDir = await mkdtemp(join(tmpdir(), 'sidegate-conformance-client-'));

async function runLeg(revision: keyof typeof SCENARIOS, script: string): Promise<Run> {
  const flags = revision === '2025-11-25' ? ' --legacy' : '';
  const command = `${process.execPath} --import tsx test/conformance/client/${script}.ts${flags}`;
  const all = new Map<string, Run extends ReadonlyMap<string, infer Checks> ? Checks : never>();
  for (const scenario of SCENARIOS[revision]) {
    const folder = join(outputDir, `${revision}-${script}-${scenario}`);
    for (const [name, checks] of await referee.judgeClient(command, scenario, revision, folder))
      all.set(name, checks);
  }
  return all;
}

let failed = 0;
for (const revision of ['2025-11-25', '2026-07-28'] as const) {
  const [direct, through] = await Promise.all([
    runLeg(revision, 'main'),
    runLeg(revision, 'through-gateway'),
  ]);
  const worse = setbacks(direct, through);
  console.log(legLine(`client ${revision} direct`, SCENARIOS[revision], direct));
  console.log(legLine(`client ${revision} through the gateway`, SCENARIOS[revision], through, worse));
  for (const setback of worse) console.error(setbackLine(setback));
  failed += tally(SCENARIOS[revision], direct, []).failed + tally(SCENARIOS[revision], through, worse).failed;
}
if (failed === 0) await rm(outputDir, { recursive: true });
else console.error(`details: ${outputDir}`);
console.log(`${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
