import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describeKnobs, type Knob } from '../../src/config/knobs.js';

/*
 * The table of settings in README.md and the whole of `.env.example`, made from the schema. Run as a program it writes
 * both: `npm run docs`.
 */

export const README = fileURLToPath(new URL('../../README.md', import.meta.url));
export const ENV_EXAMPLE = fileURLToPath(new URL('../../.env.example', import.meta.url));

const TABLE = /(<!-- knobs -->\n).*?(<!-- \/knobs -->)/s;

/** What stands between the marks of the README; undefined where it has none. */
export function knobTableIn(readme: string): string | undefined {
  return TABLE.exec(readme)?.[0].replace(TABLE, (whole, open, close) =>
    whole.slice(open.length, -close.length),
  );
}

export function withKnobTable(readme: string): string {
  return readme.replace(TABLE, (_, open, close) => `${open}${knobTable()}${close}`);
}

/** The settings as a Markdown table. */
export function knobTable(knobs: readonly Knob[] = describeKnobs()): string {
  const rows = knobs.map(({ setting, variable, fallback, description }) =>
    row([code(setting ?? ''), code(variable), code(fallback), description]),
  );
  const head = [
    row(['setting', 'environment', 'default', 'what it does']),
    row(['---', '---', '---', '---']),
  ];
  return `${[...head, ...rows].join('\n')}\n`;
}

/** Every variable with its default, commented out: copied as it is, the file changes nothing. */
export function envExample(knobs: readonly Knob[] = describeKnobs()): string {
  const entries = knobs.map(
    ({ variable, fallback, description }) => `# ${description}\n#${variable}=${fallback}\n`,
  );
  return `# Settings of Sidegate. A flag beats these, these beat sidegate.json.\n\n${entries.join('\n')}`;
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

function code(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(ENV_EXAMPLE, envExample());
  if (existsSync(README)) writeFileSync(README, withKnobTable(readFileSync(README, 'utf8')));
}
