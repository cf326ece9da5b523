/**
 * Runs the official conformance suite against the fixture server, directly and through the built gateway, and
 * compares the two: with a server that speaks the suite's revision itself, and over the bridge with one that only speaks
 * the other era.
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
import type { FixtureOptions } from './fixture-server.js';
import { type Run, setbacks } from './runner/checks.js';
import { runDirect, runThroughGateway, type Upstream } from './runner/legs.js';
import { against, type Limits, OVER_A_LEGACY_CHILD, OVER_A_LEGACY_SERVER } from './runner/limits.js';
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
    revisions: (values.revision ?? allRevisions).map((revision) =>
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

  const legs = upstreams.flatMap((upstream) => [
    { name: `via ${upstream}`, upstream, fixture: {}, limits: {} },
    { ...bridged(revision), name: `bridged via ${upstream}`, upstream },
  ]);
  const gateway: Tally[] = [];
  for (const leg of legs)
    gateway.push(await runLeg(referee, revision, leg, { required, baseline, outputDir }));
  return { direct: tally(required, baseline, []), gateway };
}

interface Leg {
  readonly name: string;
  readonly upstream: Upstream;
  readonly fixture: FixtureOptions;
  readonly limits: Limits;
}

/** The leg whose server only speaks the other era. */
function bridged(revision: string): Pick<Leg, 'fixture' | 'limits'> {
  return revision === '2026-07-28'
    ? { fixture: { legacyOnly: true }, limits: OVER_A_LEGACY_SERVER }
    : { fixture: { modernOnly: true }, limits: {} };
}

interface Baseline {
  readonly required: readonly string[];
  readonly baseline: Run;
  readonly outputDir: string;
}

async function runLeg(
  referee: Referee,
  revision: string,
  { name, upstream, fixture, limits }: Leg,
  { required, baseline, outputDir }: Baseline,
): Promise<Tally> {
  const leg = `${revision} ${name}`;
  try {
    const folder = join(outputDir, leg.replaceAll(' ', '-'));
    const run = await runThroughGateway(referee, upstream, revision, folder, fixture);
    const { worse, outlived } = against(
      limits,
      upstream === 'stdio' ? OVER_A_LEGACY_CHILD : {},
      setbacks(baseline, run),
    );
    print(legLine(leg, required, run, worse));
    for (const setback of worse) complain(setbackLine(setback));
    for (const limit of outlived) complain(`  ${limit} passes and must leave the list of limits`);
    const limited = Object.keys(limits).map((limit) => limit.split('/')[0] as string);
    const counted = required.filter((scenario) => !limited.includes(scenario));
    const { passed, failed } = tally(counted, run, worse);
    return { passed, failed: failed + outlived.length };
  } catch (error) {
    print(`${leg}: not run, ${error instanceof Error ? error.message : String(error)}`);
    return { passed: 0, failed: required.length };
  }
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
