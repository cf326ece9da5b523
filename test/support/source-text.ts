/** One TypeScript source taken apart by a scanner, for tests that read the sources. */
export interface SourceText {
  /** The text with comments and the insides of strings blanked; every offset and line stays. */
  readonly code: string;
  /** Only the comments, one after the other. */
  readonly comments: string;
  readonly imports: readonly Import[];
}

export interface Import {
  readonly specifier: string;
  /** `import './x.js'`: run for what it does, not for what it gives. */
  readonly sideEffect: boolean;
  /** Nothing of it is left when the types are erased. */
  readonly typeOnly: boolean;
}

export function readSource(text: string): SourceText {
  const { code, comments } = blank(text);
  return { code, comments, imports: importsOf(text, code) };
}

// A quote inside a regular expression would open a string that never ends, so those are skipped whole: they stand
// where no value can have come before.
const TOKEN =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[\s\S])*`|(?<=(?:^|[=(,:[!&|?{};\n]|return)\s*)\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/g;

function blank(text: string): { code: string; comments: string } {
  const comments: string[] = [];
  const code = text.replace(TOKEN, (token) => {
    if (!token.startsWith('//') && !token.startsWith('/*')) return hollow(token);
    comments.push(token);
    return token.replace(/[^\n]/g, ' ');
  });
  return { code, comments: comments.join('\n') };
}

/** Code in the `${}` of a template is kept: it is code. */
function hollow(token: string): string {
  const inside = token.slice(1, -1);
  const kept = token.startsWith('`') ? [...inside.matchAll(/\$\{[^}]*\}/g)] : [];
  let result = inside.replace(/[^\n]/g, ' ');
  for (const piece of kept)
    result = result.slice(0, piece.index) + piece[0] + result.slice(piece.index + piece[0].length);
  return `${token[0]}${result}${token.at(-1)}`;
}

const STATEMENT = /^(?:import|export)\b(?<what>[\w$*,\s{}]*?)\bfrom\s*(?=["'])/gm;
const SIDE_EFFECT = /^import\s*(?=["'])/gm;
const CALL = /\b(?:import|require|import\.meta\.resolve)\s*\(\s*(?=["'`])/g;

function importsOf(text: string, code: string): Import[] {
  const find = (pattern: RegExp, sideEffect: boolean): Import[] =>
    [...code.matchAll(pattern)].map((match) => ({
      specifier: stringAt(text, match.index + match[0].length),
      sideEffect,
      typeOnly: isTypeOnly(match.groups?.['what'] ?? ''),
    }));
  return [...find(STATEMENT, false), ...find(SIDE_EFFECT, true), ...find(CALL, false)];
}

function isTypeOnly(what: string): boolean {
  if (/^\s*type\b(?!\s*,)/.test(what)) return true;
  const names = /^\s*\{([\s\S]*)\}\s*$/.exec(what)?.[1];
  return names?.trim() ? names.split(',').every((name) => !name.trim() || /^\s*type\s/.test(name)) : false;
}

function stringAt(text: string, at: number): string {
  const end = text.indexOf(text[at] as string, at + 1);
  return text.slice(at + 1, end);
}
