const MASK = '[redacted]';

/** Tokens as they stand in free text: messages of servers, lines of their stderr, URLs in errors. */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/\b(bearer\s+)[^\s"'\\,;]+/gi, `$1${MASK}`],
  [
    /\b((?:authorization|cookie|api[-_]?key)\\?["']?\s*[:=]\s*\\?["']?)(?:(?:bearer|basic)\s+)?[^\s"'\\,;]+/gi,
    `$1${MASK}`,
  ],
  [/(\/\/)[^\s/@"\\]+@/g, `$1${MASK}@`],
  [/([?&][^\s=&"\\]*(?:token|key|secret|password|signature)[^\s=&"\\]{0,32}=)[^\s&"\\]+/gi, `$1${MASK}`],
];

/**
 * The text without what looks like a credential. A last defence: what is known to be one must not get here. Linear in
 * the text's length.
 */
export function maskSecrets(text: string): string {
  return PATTERNS.reduce((masked, [pattern, by]) => masked.replace(pattern, by), text);
}
