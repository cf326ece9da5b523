import type { Setback } from './checks.js';

/** Checks that cannot pass over a bridge, by `scenario/check` or `scenario/*`, and why. */
export type Limits = Readonly<Record<string, string>>;

const KEYS =
  'a legacy server gives its questions ids, not names: the keys of inputRequests are the gateway’s own';
const NOT_ASKED =
  'the server learns of capabilities in its handshake and answers what it cannot ask by a tool error';
const TASKS = 'tasks of 2025-11-25 and the tasks extension are not translated into each other';

/** Of 2026-07-28, with a server that only speaks the revisions before it. */
export const OVER_A_LEGACY_SERVER: Limits = {
  'input-required-result-basic-elicitation/*': KEYS,
  'input-required-result-ignore-extra-params/sep-2322-ignore-unexpected-params': KEYS,
  'input-required-result-capability-check/sep-2322-respect-client-capabilities': NOT_ASKED,
  'server-stateless/sep-2575-server-rejects-undeclared-capability': NOT_ASKED,
  'server-stateless/sep-2575-missing-capability-http-400': NOT_ASKED,
  'tasks-capability-negotiation/*': TASKS,
  'tasks-dispatch-and-envelope/*': TASKS,
  'tasks-lifecycle/*': TASKS,
  'tasks-mrtr-composition/*': TASKS,
  'tasks-mrtr-input/*': TASKS,
  'tasks-request-headers/*': TASKS,
  'tasks-request-state-removal/*': TASKS,
  'tasks-required-task-error/*': TASKS,
  'tasks-wire-fields/*': TASKS,
};

/** The same of a child, in addition; whether they pass depends on the machine. */
export const OVER_A_LEGACY_CHILD: Limits = {
  'server-stateless/sep-2575-http-server-no-independent-requests-on-stream':
    'each set of capabilities has a child of its own, and starting one takes longer than the referee waits',
};

export interface Judged {
  /** Set-backs that nothing explains. */
  readonly worse: readonly Setback[];
  /** Limits that are none: what they name is no worse than direct. */
  readonly outlived: readonly string[];
}

/** Holds what got worse against what must, and what may. */
export function against(limits: Limits, may: Limits, setbacks: readonly Setback[]): Judged {
  const all = { ...limits, ...may };
  const met = new Set<string>();
  const worse = setbacks.filter(({ scenario, check }) => {
    const known = [`${scenario}/${check ?? ''}`, `${scenario}/*`].find((name) => Object.hasOwn(all, name));
    if (known !== undefined) met.add(known);
    return known === undefined;
  });
  return { worse, outlived: Object.keys(limits).filter((name) => !met.has(name)) };
}
