/** Something wrong in a configuration, and where. Messages name settings and variables; values never. */
export interface Problem {
  readonly path: Path;
  readonly message: string;
}

/** Member names and list positions, outermost first. */
export type Path = readonly (string | number)[];

/** `mcpServers.files.args[1]: must be a text`, on one line whatever the names hold. */
export function problemLine(problem: Problem): string {
  return `${pathText(problem.path)}: ${problem.message}`;
}

function pathText(path: Path): string {
  return path.map((step, index) => stepText(step, index === 0)).join('');
}

function stepText(step: string | number, first: boolean): string {
  if (typeof step === 'number') return `[${step}]`;
  if (!/^[\w$-]+$/.test(step)) return `[${JSON.stringify(step.slice(0, 128))}]`;
  return first ? step : `.${step}`;
}

/** All problems in their order, each place once: what follows from an earlier fault is not reported again. */
export function oncePerPlace(problems: readonly Problem[]): Problem[] {
  const byPlace = new Map<string, Problem>();
  for (const problem of problems) {
    const place = JSON.stringify(problem.path);
    if (!byPlace.has(place)) byPlace.set(place, problem);
  }
  return [...byPlace.values()];
}

/** What zod found, in our form. */
export function problemsOf(
  issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[],
  at: Path,
): Problem[] {
  return issues.map(({ path, message }) => ({
    path: [...at, ...path.map((step) => (typeof step === 'number' ? step : String(step)))],
    message,
  }));
}
