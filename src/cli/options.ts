import { parseArgs } from 'node:util';
import { didYouMean } from '../config/nearest.js';
import { UsageError } from './usage.js';

interface Option {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: boolean;
}

/** Every flag there is; which command knows which: `args.ts`. */
export const OPTIONS = {
  config: { type: 'string' },
  host: { type: 'string' },
  port: { type: 'string' },
  'log-level': { type: 'string' },
  header: { type: 'string', multiple: true },
  stdio: { type: 'boolean' },
  server: { type: 'string' },
  fresh: { type: 'boolean' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const satisfies Record<string, Option>;
export type OptionName = keyof typeof OPTIONS;

/** A command line by its grammar alone. */
export interface ParsedLine {
  readonly positionals: readonly string[];
  readonly values: ReadonlyMap<OptionName, readonly string[]>;
  /** What follows `--`; undefined where there is none. */
  readonly command: readonly string[] | undefined;
}

/** Splits a command line into flags, positionals and the command behind `--`. Throws UsageError. */
export function parseLine(argv: readonly string[]): ParsedLine {
  const split = argv.indexOf('--');
  const own = split < 0 ? argv : argv.slice(0, split);
  const { tokens } = parseArgs({
    args: [...own],
    options: OPTIONS,
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const positionals: string[] = [];
  const values = new Map<OptionName, string[]>();
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const name = optionName(token.name, token.rawName, positionals[0]);
    const value = givenValue(name, token.value, token.inlineValue);
    values.set(name, [...(values.get(name) ?? []), value]);
  }
  return { positionals, values, command: split < 0 ? undefined : argv.slice(split + 1) };
}

function optionName(name: string, raw: string, before: string | undefined): OptionName {
  if (Object.hasOwn(OPTIONS, name)) return name as OptionName;
  const known = Object.keys(OPTIONS).map((option) => `--${option}`);
  const guess = didYouMean(raw, known);
  const isCommand = before !== undefined && !/^(tools|call|check|help|version|https?:.*)$/i.test(before);
  const hint =
    isCommand && !guess ? `; a server's command goes behind --: sidegate -- ${before} ${raw} …` : guess;
  throw new UsageError(`There is no flag ${raw}${hint}`);
}

/** The flag's value; empty for a flag that has none. */
function givenValue(name: OptionName, value: string | undefined, inline: boolean | undefined): string {
  if (OPTIONS[name].type === 'boolean') {
    if (value === undefined) return '';
    throw new UsageError(`--${name} takes no value`);
  }
  // Without `=`, what looks like the next flag is one: its own value was forgotten.
  if (value === undefined || (!inline && value.startsWith('-')))
    throw new UsageError(`--${name} needs a value`);
  return value;
}
