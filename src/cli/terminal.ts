/** Characters that move a cursor, colour a terminal or turn the direction of writing. */
const UNSAFE = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu;

/** A server's text on one line of a terminal. */
export function printable(text: string): string {
  return text.replaceAll(UNSAFE, ' ').trim();
}

/** The same value as JSON, indented, with nothing in it that a terminal would obey. */
export function printableJson(value: unknown): string {
  const unsafe = /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
  const hexEscape = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return (JSON.stringify(value, null, 2) ?? 'null').replaceAll(unsafe, hexEscape);
}

/** One line to stdout: what was asked for. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** One line to stderr: what went wrong. */
export function complain(line: string): void {
  process.stderr.write(`sidegate: ${printable(line)}\n`);
}

/** Rows as lines, every column but the last padded to its widest cell. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = new Map<number, number>();
  for (const row of rows)
    for (const [i, cell] of row.entries()) widths.set(i, Math.max(widths.get(i) ?? 0, cell.length));
  return rows.map((row) =>
    row
      .map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths.get(i) ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}
