/** One instruction of a Dockerfile: its name in upper case and the rest of it in one line. */
export interface Instruction {
  readonly name: string;
  readonly text: string;
}

export interface Stage {
  /** After `AS`; empty for the last one. */
  readonly name: string;
  readonly base: string;
  readonly instructions: readonly Instruction[];
}

/** The stages of a Dockerfile in their order; comments are left out, continued lines joined. */
export function readDockerfile(text: string): Stage[] {
  const lines = text.split('\n').filter((line) => !/^\s*(#|$)/.test(line));
  const whole = lines
    .join('\n')
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n');
  const stages: { name: string; base: string; instructions: Instruction[] }[] = [];
  for (const line of whole) {
    const [, name = '', rest = ''] = /^\s*(\w+)\s+(.*)$/.exec(line) ?? [];
    if (name.toUpperCase() !== 'FROM') {
      stages.at(-1)?.instructions.push({ name: name.toUpperCase(), text: rest.trim() });
      continue;
    }
    const [base = '', , stage = ''] = rest.trim().split(/\s+/);
    stages.push({ name: stage, base, instructions: [] });
  }
  return stages;
}

/** Text of the last instruction of that name. */
export function last(stage: Stage, name: string): string {
  return stage.instructions.findLast((instruction) => instruction.name === name)?.text ?? '';
}

/** Variables that a stage sets for its own RUN lines and for the container. */
export function environmentOf(stage: Stage): Record<string, string> {
  const texts = stage.instructions.filter(({ name }) => name === 'ENV').map(({ text }) => text);
  return Object.fromEntries(
    texts.flatMap((text) => text.split(/\s+/)).map((pair) => pair.split('=') as [string, string]),
  );
}

/** True where a path at the top of the context reaches the build; the last matching line of `.dockerignore` decides. */
export function inContext(dockerignore: string, path: string): boolean {
  const lines = dockerignore.split('\n').filter((line) => line && !line.startsWith('#'));
  const deciding = lines.findLast((line) => ['*', path].includes(line.replace(/^!/, '')));
  return deciding === undefined || deciding.startsWith('!');
}
