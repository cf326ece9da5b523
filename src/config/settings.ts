import { settingsFromEnv, variableOf } from './env.js';
import { type Environment, expandValue } from './expand.js';
import { didYouMean } from './nearest.js';
import { problemLine } from './problems.js';
import { type SettingKey, type Settings, settingKeys, settingsSchema } from './schema.js';

/** Values of flags, as they were typed. */
export type Flags = Readonly<Partial<Record<SettingKey, string>>>;

export interface SettingsResult {
  /** Undefined together with at least one problem. */
  readonly settings: Settings | undefined;
  /** One line a problem, each naming the flag, the variable or the member of the file. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** One setting's value, and where it came from as people know it: a flag, a variable, a member of the file. */
interface Given {
  readonly value: unknown;
  readonly place: string;
  readonly problems: readonly string[];
}

/** The general settings: a flag beats the environment, which beats the file, which beats the default. */
export function readSettings(
  file: ReadonlyMap<string, unknown>,
  env: Environment,
  flags: Flags,
): SettingsResult {
  const variables = settingsFromEnv(env);
  const given = new Map<string, Given>();
  for (const key of settingKeys()) {
    const value = flags[key] ?? variables.get(key);
    const place = flags[key] === undefined ? variableOf(key) : flagOf(key);
    const found = value === undefined ? fromFile(key, file.get(key), env) : { value, place, problems: [] };
    if (found) given.set(key, found);
  }
  const values = Object.fromEntries([...given].map(([key, { value }]) => [key, value]));
  const parsed = settingsSchema.safeParse(values);
  const problems = [...given.values()].flatMap((found) => found.problems);
  for (const issue of parsed.error?.issues ?? []) {
    const [key, ...rest] = issue.path;
    const place = given.get(String(key))?.place ?? String(key);
    problems.push(problemLine({ path: [place, ...rest.map(Number)], message: issue.message }));
  }
  const settings = problems.length === 0 ? parsed.data : undefined;
  return { settings, problems: [...new Set(problems)], warnings: unknownSettings(file) };
}

function fromFile(key: SettingKey, raw: unknown, env: Environment): Given | undefined {
  if (raw === undefined || raw === null) return undefined;
  const { value, problems } = expandValue(raw, env, [key]);
  // A value that could not be expanded is reported as that, and stands for its default from here on.
  if (problems.length > 0) return { value: undefined, place: key, problems: problems.map(problemLine) };
  return { value, place: key, problems: [] };
}

function unknownSettings(file: ReadonlyMap<string, unknown>): string[] {
  const known = [...settingKeys(), 'mcpServers'];
  return [...file.keys()]
    .filter((key) => key !== '$schema' && !known.includes(key))
    .map((key) => problemLine({ path: [key], message: `is unknown and ignored${didYouMean(key, known)}` }));
}

/** The flag that sets a setting: its name in kebab case. */
export function flagOf(key: SettingKey): string {
  return `--${key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** What is wrong with a flag's value, or undefined. */
export function flagProblem(key: SettingKey, value: string): string | undefined {
  const issue = settingsSchema.shape[key].safeParse(value).error?.issues[0];
  return issue && problemLine({ path: [flagOf(key)], message: issue.message });
}
