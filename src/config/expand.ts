import type { Path, Problem } from './problems.js';

/** Environment variables by name; `process.env` is one. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What is wrong with one string of a configuration. Names variables, never values. */
export interface Expansion {
  readonly text: string;
  readonly problems: readonly string[];
}

/** `${NAME`, `${env:NAME`, then `}` or the `:-` before a default. */
const OPENING = /\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(\}|:-)/y;
const PLAIN = /[^$}]+/y;
/** What an unsupported form is shown as: its head, never what may be a default or a message. */
const HEAD = /\$\{([A-Za-z0-9_.-]{0,64}:?)/y;

/** One `${NAME:-…` that is not closed yet, or the whole string. */
interface Frame {
  /** The variable's value; undefined: the default counts. */
  readonly value: string | undefined;
  /** False inside a default that is not needed: what is unset there is nobody's problem. */
  readonly live: boolean;
  /** Braces opened by an escaped `$${` inside this default. */
  literalBraces: number;
  text: string;
}

/**
 * Replaces `${NAME}`, `${env:NAME}` and `${NAME:-default}` by the environment's values; defaults nest and count where
 * the variable is unset or empty. `$${` stands for a literal `${`, any other `$` for itself. A variable's value is
 * taken as it is. Everything that cannot be replaced is a problem, and `text` must then not be used.
 */
export function expandText(source: string, env: Environment): Expansion {
  if (!source.includes('${')) return { text: source, problems: [] };
  const problems: string[] = [];
  const frames: Frame[] = [{ value: undefined, live: true, literalBraces: 0, text: '' }];
  let at = 0;
  while (at < source.length) at = step(source, at, frames, env, problems);
  if (frames.length > 1) problems.push('a `${` is not closed');
  return { text: frames[0]?.text ?? '', problems };
}

/** Reads one piece at `at` into the innermost frame; answers where the next one begins. */
function step(source: string, at: number, frames: Frame[], env: Environment, problems: string[]): number {
  const frame = frames.at(-1) as Frame;
  const plain = match(PLAIN, source, at);
  if (plain) {
    frame.text += plain[0];
    return at + plain[0].length;
  }
  if (source.startsWith('$${', at)) {
    frame.text += '${';
    frame.literalBraces++;
    return at + 3;
  }
  if (source.startsWith('${', at)) return open(source, at, frames, env, problems);
  if (source[at] === '}' && frames.length > 1 && frame.literalBraces === 0) {
    frames.pop();
    (frames.at(-1) as Frame).text += frame.value ?? frame.text;
    return at + 1;
  }
  if (source[at] === '}' && frame.literalBraces > 0) frame.literalBraces--;
  frame.text += source[at];
  return at + 1;
}

function open(source: string, at: number, frames: Frame[], env: Environment, problems: string[]): number {
  const frame = frames.at(-1) as Frame;
  const opening = match(OPENING, source, at);
  if (!opening) return unsupported(source, at, problems);
  const name = opening[1] as string;
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  if (opening[2] === ':-') {
    const needed = value === undefined || value === '';
    frames.push({
      value: needed ? undefined : value,
      live: frame.live && needed,
      literalBraces: 0,
      text: '',
    });
  } else {
    if (value === undefined && frame.live) problems.push(`variable ${name} is not set`);
    frame.text += value ?? '';
  }
  return at + opening[0].length;
}

/** Steps over a form that is not ours, so that each is named once. */
function unsupported(source: string, at: number, problems: string[]): number {
  const close = source.indexOf('}', at);
  if (close < 0) problems.push('a `${` is not closed');
  else {
    const head = match(HEAD, source, at)?.[1] ?? '';
    const rest = at + 2 + head.length < close ? '…' : '';
    problems.push(`\`\${${head}${rest}}\` is not supported: write \${NAME} or \${NAME:-default}`);
  }
  return close < 0 ? source.length : close + 1;
}

function match(pattern: RegExp, source: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(source);
}

/** No setting nests deeper; what does is somebody else's, or an attack on the stack. */
const MAX_DEPTH = 32;

/** The same for every string below a value. Keys are left alone. A string with a problem becomes undefined. */
export function expandValue(
  value: unknown,
  env: Environment,
  path: Path = [],
): { value: unknown; problems: readonly Problem[] } {
  if (typeof value === 'string') {
    const { text, problems } = expandText(value, env);
    const placed = [...new Set(problems)].map((message) => ({ path, message }));
    return { value: placed.length > 0 ? undefined : text, problems: placed };
  }
  if (typeof value !== 'object' || value === null) return { value, problems: [] };
  if (path.length > MAX_DEPTH)
    return { value: undefined, problems: [{ path, message: 'is nested too deeply' }] };
  const problems: Problem[] = [];
  const expanded = Object.entries(value).map(([key, item]): [string, unknown] => {
    const result = expandValue(item, env, [...path, Array.isArray(value) ? Number(key) : key]);
    problems.push(...result.problems);
    return [key, result.value];
  });
  const copy = Array.isArray(value) ? expanded.map(([, item]) => item) : Object.fromEntries(expanded);
  return { value: copy, problems };
}
