import type { Environment } from './expand.js';
import { nearest } from './nearest.js';
import { type SettingKey, settingKeys } from './schema.js';

/*
 * The only reader of `process.env` in the project. Every function takes the environment, so that a test or a library
 * user can give another.
 */

/** The variables of this process, live: a change is seen at the next read. */
export function environment(): NodeJS.ProcessEnv {
  return process.env;
}

const PREFIX = 'SIDEGATE_';
export const CONFIG_VARIABLE = 'SIDEGATE_CONFIG';
export const TOOLLIST_TTL_VARIABLE = 'SIDEGATE_TOOLLIST_TTL_MS';

/** The variable that sets a general setting: `SIDEGATE_` and its name in upper snake case. */
export function variableOf(key: SettingKey): string {
  if (key === 'toolListTtlMs') return TOOLLIST_TTL_VARIABLE;
  return PREFIX + key.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

/** Path of the configuration file, or undefined. */
export function configPathFromEnv(env: Environment = process.env): string | undefined {
  return env[CONFIG_VARIABLE]?.trim() || undefined;
}

/**
 * The general settings that the environment gives, unchecked. A blank variable counts as unset. The TTL of lists is
 * not among them: it is read at each listing.
 */
export function settingsFromEnv(env: Environment = process.env): Map<SettingKey, string> {
  const given = new Map<SettingKey, string>();
  for (const key of settingKeys()) {
    const value = key === 'toolListTtlMs' ? undefined : env[variableOf(key)];
    if (value?.trim()) given.set(key, value);
  }
  return given;
}

/** Names that are probably mistyped variables of ours, one warning each. Others may be somebody's own. */
export function mistypedVariables(env: Environment = process.env): string[] {
  const known = [CONFIG_VARIABLE, ...settingKeys().map(variableOf)];
  const tails = known.map((name) => name.slice(PREFIX.length));
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !known.includes(name))
    .flatMap((name) => {
      const guess = nearest(name.slice(PREFIX.length), tails);
      return guess === undefined ? [] : [`${name}: is unknown and ignored (did you mean ${PREFIX}${guess}?)`];
    });
}

const MILLISECONDS = /^[+-]?\d+(\.\d+)?$/;

/**
 * Default TTL of tool lists, in milliseconds, as the environment has it at this moment: `fallbackMs` where the
 * variable is unset, 0 where it is negative, `fallbackMs` and a warning where it is no number. Wrap `warn` by
 * `warnOnce` to hear of each value once.
 */
export function toolListTtlFromEnv(
  env: Environment,
  fallbackMs: number,
  warn: (message: string) => void,
): number {
  const text = env[TOOLLIST_TTL_VARIABLE];
  if (text === undefined) return fallbackMs;
  if (MILLISECONDS.test(text.trim())) {
    const ms = Number(text);
    if (Number.isFinite(ms)) return Math.max(0, ms);
  }
  const shown = JSON.stringify(text.slice(0, 40));
  warn(`${TOOLLIST_TTL_VARIABLE} is ${shown}, not a number of milliseconds: ${fallbackMs} is used`);
  return fallbackMs;
}

/** Passes each distinct message on once. */
export function warnOnce(warn: (message: string) => void): (message: string) => void {
  const told = new Set<string>();
  return (message) => {
    if (told.has(message)) return;
    told.add(message);
    warn(message);
  };
}
