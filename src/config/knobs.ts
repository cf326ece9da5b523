import { CONFIG_VARIABLE, variableOf } from './env.js';
import { CONFIG_FILE_NAME } from './find.js';
import { settingKeys, settingsSchema } from './schema.js';

/** One thing an operator can turn, as the documentation shows it. */
export interface Knob {
  /** Member of the configuration file; undefined where only the environment has it. */
  readonly setting: string | undefined;
  readonly variable: string;
  /** As it would be written in the environment; empty for none. */
  readonly fallback: string;
  readonly description: string;
}

/** Every general setting, derived from the schema, in its order. */
export function describeKnobs(): Knob[] {
  const defaults = settingsSchema.parse({});
  const settings = settingKeys().map(
    (key): Knob => ({
      setting: key,
      variable: variableOf(key),
      fallback: String(defaults[key]),
      description: settingsSchema.shape[key].meta()?.description ?? '',
    }),
  );
  const file: Knob = {
    setting: undefined,
    variable: CONFIG_VARIABLE,
    fallback: `./${CONFIG_FILE_NAME}`,
    description: 'Path of the configuration file.',
  };
  return [file, ...settings];
}
