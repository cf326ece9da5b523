import { count, isPassed, type Run, type Setback } from './checks.js';

/** What came of a leg, in scenarios. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
}

/** A required scenario that failed or got worse, or an unscored one that got worse. */
export function tally(required: readonly string[], run: Run, worse: readonly Setback[]): Tally {
  const failed = new Set(required.filter((scenario) => !isPassed(run.get(scenario))));
  for (const { scenario } of worse) failed.add(scenario);
  return { passed: required.filter((scenario) => !failed.has(scenario)).length, failed: failed.size };
}

/** One line; only what a revision requires is in its numbers. `worse` is left out for the direct leg. */
export function legLine(
  name: string,
  required: readonly string[],
  run: Run,
  worse?: readonly Setback[],
): string {
  const failing = required.filter((scenario) => !isPassed(run.get(scenario)));
  const checks = required.flatMap((scenario) => run.get(scenario) ?? []);
  const passed = count(checks, 'SUCCESS');
  const parts = [
    `${required.length - failing.length}/${required.length} scenarios`,
    `${passed}/${passed + count(checks, 'FAILURE')} checks`,
  ];
  if (failing.length > 0)
    parts.push(`failing: ${failing.map((scenario) => describeFailing(scenario, run)).join(' ')}`);
  if (worse) parts.push(`worse than direct: ${worse.map(nameOf).join(' ') || 'none'}`);
  return `${name}: ${parts.join(', ')}`;
}

/** One line with what the referee had to say. */
export function setbackLine({ before, after, message, ...setback }: Setback): string {
  if (!setback.check) return `  ${setback.scenario} did not come to its end`;
  return `  ${nameOf(setback)}: ${before ?? 'absent'} -> ${after ?? 'absent'} ${message ?? ''}`.trimEnd();
}

function nameOf({ scenario, check }: Setback): string {
  return `${scenario}/${check ?? '*'}`;
}

function describeFailing(scenario: string, run: Run): string {
  const checks = run.get(scenario);
  return `${scenario}(${checks ? count(checks, 'FAILURE') : 'not run'})`;
}
