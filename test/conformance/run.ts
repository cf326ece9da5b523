/**
 * Runs the official conformance suite against the fixture server, directly and through the built gateway, and
 * compares the two.
 *
 *   node --import tsx test/conformance/run.ts [--direct] [--upstream http|stdio]... [--revision 2025-11-25|2026-07-28]...
 *
 * The direct leg always runs, as the baseline; `--direct` alone leaves the gateway out. One line for each leg, then
 * the number of scenarios that passed and failed through the gateway (without one: directly). Exit status 1 when a
 * required scenario fails or runs no check, or when any check is worse through the gateway.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { setbacks } from './runner/checks.js';
import { runDirect, runThroughGateway, type Upstream } from './runner/legs.js';
import { openReferee, type Referee } from './runner/referee.js';
import { legLine, setbackLine, type Tally, tally } from './runner/report.js';

const allUpstreams: readonly Upstream[] = ['http', 'stdio'];
const allRevisions = ['2025-11-25', '2026-07-28'] as const;

interface Plan {
  readonly upstreams: readonly Upstream[];
  readonly revisions: readonly string[];
}

function readPlan(): Plan {
  const { values } = parseArgs({
    options: {
      direct: { type: 'boolean', default: false },
      upstream: { type: 'string', multiple: true },
      revision: { type: 'string', multiple: true },
    },
  });
  const upstreams = values.upstream ?? (values.direct ? [] : allUpstreams);
  return {
    upstreams: upstreams.map((upstream) => oneOf(allUpstreams, upstream, '--upstream')),
    revisions: (values.revision ?? ['2025-11-25']).map((revision) =>
      oneOf(allRevisions, revision, '--revision'),
    ),
  };
}

function oneOf<T extends string>(choices: readonly T[], value: string, option: string): T {
  const choice = choices.find((candidate) => candidate === value);
  if (!choice) throw new Error(`${option} takes ${choices.join(' or ')}, not ${value}`);
  return choice;
}

interface RevisionTallies {
  readonly direct: Tally;
  readonly gateway: readonly Tally[];
}

async function runRevision(
  referee: Referee,
  revision: string,
  upstreams: readonly Upstream[],
  outputDir: string,
): Promise<RevisionTallies> {
  const required = await referee.required(revision);
  const baseline = await runDirect(referee, revision, join(outputDir, `${revision}-direct`));
  print(legLine(`${revision} direct`, required, baseline));

  const gateway: Tally[] = [];
  for (const upstream of upstreams) {
    const name = `${revision} via ${upstream}`;
    try {
      const folder = join(outputDir, `${revision}-${upstream}`);
      const run = await runThroughGateway(referee, upstream, revision, folder);
      const worse = setbacks(baseline, run);
      print(legLine(name, required, run, worse));
      for (const setback of worse) complain(setbackLine(setback));
      gateway.push(tally(required, run, worse));
    } catch (error) {
      print(`${name}: not run, ${error instanceof Error ? error.message : String(error)}`);
      gateway.push({ passed: 0, failed: required.length });
    }
  }
  return { direct: tally(required, baseline, []), gateway };
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function complain(line: string): void {
  process.stderr.write(`${line}\n`);
}

function sum(tallies: readonly Tally[], of: keyof Tally): number {
  return tallies.reduce((total, one) => total + one[of], 0);
}

async function main(): Promise<void> {
  const plan = readPlan();
  const referee = await openReferee();
  const outputDir = await mkdtemp(join(tmpdir(), 'sidegate-conformance-'));

  const direct: Tally[] = [];
  const gateway: Tally[] = [];
  for (const revision of plan.revisions) {
    const tallies = await runRevision(referee, revision, plan.upstreams, outputDir);
    direct.push(tallies.direct);
    gateway.push(...tallies.gateway);
  }

  const isGreen = sum([...direct, ...gateway], 'failed') === 0;
  if (isGreen) await rm(outputDir, { recursive: true });
  else complain(`details: ${outputDir}`);
  const counted = plan.upstreams.length > 0 ? gateway : direct;
  print(`${sum(counted, 'passed')} passed, ${sum(counted, 'failed')} failed`);
  process.exitCode = isGreen ? 0 : 1;
}

await main();
