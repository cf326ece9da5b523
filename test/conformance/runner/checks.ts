export type Status = 'INFO' | 'SUCCESS' | 'SKIPPED' | 'WARNING' | 'FAILURE';

/** One verdict of the referee. An id may occur several times in a scenario. */
export interface Check {
  readonly id: string;
  readonly status: Status;
  readonly errorMessage?: string;
}

/** The checks of every scenario that ran to its end. */
export type Run = ReadonlyMap<string, readonly Check[]>;

/** A check that came out worse than in the baseline; without an id, a scenario that did not come to its end. */
export interface Setback {
  readonly scenario: string;
  readonly check?: string;
  readonly before?: Status;
  readonly after?: Status;
  readonly message?: string;
}

const badness: Record<Status, number> = { INFO: 0, SUCCESS: 0, SKIPPED: 1, WARNING: 2, FAILURE: 3 };

export function count(checks: readonly Check[], status: Status): number {
  return checks.filter((check) => check.status === status).length;
}

/** The referee itself ticks a scenario in which no check ran; here it fails. */
export function isPassed(checks: readonly Check[] | undefined): boolean {
  return checks !== undefined && count(checks, 'SUCCESS') > 0 && count(checks, 'FAILURE') === 0;
}

/** Warnings and unscored scenarios count too: they fail nothing by themselves, and hide what a relay breaks. */
export function setbacks(baseline: Run, run: Run): Setback[] {
  return [...baseline].flatMap(([scenario, before]) => {
    const after = run.get(scenario);
    return after ? compare(scenario, worstById(before), worstById(after)) : [{ scenario }];
  });
}

function compare(
  scenario: string,
  baseline: ReadonlyMap<string, Check>,
  run: ReadonlyMap<string, Check>,
): Setback[] {
  const found: Setback[] = [];
  for (const check of new Set([...baseline.keys(), ...run.keys()])) {
    const before = baseline.get(check);
    const after = run.get(check);
    if (!isWorse(before?.status, after?.status)) continue;
    found.push({
      scenario,
      check,
      ...(before && { before: before.status }),
      ...(after && { after: after.status }),
      ...(after?.errorMessage && { message: after.errorMessage }),
    });
  }
  return found;
}

function isWorse(before: Status | undefined, after: Status | undefined): boolean {
  if (after === undefined) return before !== 'INFO';
  if (before === undefined) return badness[after] >= badness.WARNING;
  return badness[after] > badness[before];
}

function worstById(checks: readonly Check[]): ReadonlyMap<string, Check> {
  const worst = new Map<string, Check>();
  for (const check of checks) {
    const known = worst.get(check.id);
    if (!known || badness[check.status] > badness[known.status]) worst.set(check.id, check);
  }
  return worst;
}
