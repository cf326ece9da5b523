import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Figures, Report } from '../support/leak-probe.js';

const PROBE = fileURLToPath(new URL('../support/leak-probe.ts', import.meta.url));
/** What one agent that is gone may cost for ever, most of it in the test's own records. */
const LEFT_PER_AGENT_BYTES = 500;
/** By how much two measurements of the same differ. */
const NOISE_BYTES = 500_000;

/** Runs a scenario in a process of its own, where nothing else is open. */
async function measure(t: TestContext, scenario: string): Promise<Report> {
  const args = ['--expose-gc', '--import', 'tsx', PROBE, scenario];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const report = JSON.parse(stdout) as Report;
  for (const figures of report.figures) t.diagnostic(`${scenario}: ${JSON.stringify(figures)}`);
  t.diagnostic(`${scenario}: at most ${JSON.stringify(report.peak)}`);
  return report;
}

/** The first round also makes what is made once. What leaks grows in every later one; what a collection left over does not. */
function assertFlat({ agents, figures }: Report): void {
  for (const { heapBytes: _, ...open } of figures) assert.deepEqual(open, NOTHING);
  const heaps = figures.slice(1).map(({ heapBytes }) => heapBytes);
  const growth = Math.min(...heaps.slice(1).map((after, at) => after - (heaps[at] as number)));
  assert.ok(growth < NOISE_BYTES + agents * LEFT_PER_AGENT_BYTES, `${growth} bytes more in every round`);
}

const NOTHING: Omit<Figures, 'heapBytes'> = {
  sockets: 0,
  timers: 0,
  children: 0,
  agentSessions: 0,
  upstreamSessions: 0,
  upstreamStreams: 0,
  connections: 0,
};

test('thousands of agents that left, were silent, or vanished in a call or while listening leave nothing', async (t) => {
  const report = await measure(t, 'shared');
  assert.equal(report.peak.upstreamSessions, 1);
  assertFlat(report);
});

test('agents with an upstream session each leave no session, stream or socket at the server', async (t) => {
  const report = await measure(t, 'isolated');
  assert.equal(report.peak.upstreamSessions, report.agents);
  assertFlat(report);
});

test('a hundred agents with a child each leave no process and no pipe', async (t) => {
  const report = await measure(t, 'children');
  assert.equal(report.peak.children, 100);
  assertFlat(report);
});
