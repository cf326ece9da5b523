const MASK = '[redacted]';

/** Tokens as they stand in free text: messages of servers, lines of their stderr, URLs in errors. */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/\b(bearer\s+)[^\s"'\\,;]+/gi, `$1${MASK}`],
  [
    // Behind `headers.Name:` or `env.NAME:` stands what is wrong with a configuration, never a value.
    /(?<!\b(?:headers|env)\.[\w-]{0,64})\b((?:authorization|cookie|api[-_]?key)(?:\\"|')?\s*[:=]\s*(?:\\"|')?)(?:(?:bearer|basic)\s+)?[^\s"'\\,;]+/gi,
    `$1${MASK}`,
  ],
  [/(\/\/)[^\s/@"\\]+@/g, `$1${MASK}@`],
  [/([?&][\w.-]{0,32}(?:token|key|secret|password|signature)[\w.-]{0,32}=)[^\s&"\\]+/gi, `$1${MASK}`],
];

/**
 * A line of JSON without what looks like a credential inside its strings; it stays a line of JSON. A last defence:
 * what is known to be a credential must not get here. Linear in the line's length.
 */
export function maskSecrets(line: string): string {
  return PATTERNS.reduce((masked, [pattern, by]) => masked.replace(pattern, by), line);
}
