import { stripVTControlCharacters } from 'node:util';

/** Makes text for people of what a child wrote outside the protocol. */
export type TextReader = (bytes: Buffer) => string;

/** Declared values shorter than this are words of everyday, not secrets. */
const MIN_SECRET_LENGTH = 8;

/**
 * A reader that drops terminal codes and control characters, and puts `${NAME}` for the value of a declared variable:
 * those are the child's credentials, and what it prints reaches logs and agents.
 */
export function textReader(declared: Readonly<Record<string, string>>): TextReader {
  const secrets = secretsOf(declared);
  return (bytes) => {
    let text = stripVTControlCharacters(bytes.toString('utf8'));
    for (const [value, name] of secrets) text = text.replaceAll(value, () => `\${${name}}`);
    return text.replace(/\p{Cc}+/gu, ' ').trim();
  };
}

/** Values with their names, longest first: one may be a part of another. A value of several lines is printed by line. */
function secretsOf(declared: Readonly<Record<string, string>>): [value: string, name: string][] {
  return Object.entries(declared)
    .flatMap(([name, value]) => value.split(/\r?\n/).map((line): [string, string] => [line.trim(), name]))
    .filter(([value]) => value.length >= MIN_SECRET_LENGTH)
    .sort(([a], [b]) => b.length - a.length);
}
