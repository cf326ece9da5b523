import { readFileSync, writeFileSync } from 'node:fs';
import { README } from '../support/knobs.js';

/** By row, then by pair of eras: how it went, over each pair of transports. */
export class Results {
  readonly #rows = new Map<string, Map<string, Set<string>>>();

  note(row: string, column: string, how: string): void {
    const columns = this.#rows.get(row) ?? new Map<string, Set<string>>();
    const outcomes = columns.get(column) ?? new Set<string>();
    this.#rows.set(row, columns.set(column, outcomes.add(how)));
  }

  /** The table of the README. */
  table(): string {
    const [first] = this.#rows.values();
    const columns = [...(first?.keys() ?? [])];
    const rows = [...this.#rows].map(([name, row]) => [
      name,
      ...columns.map((column) => [...(row.get(column) ?? [])].join(', ')),
    ]);
    const lines = [['', ...columns], ['---', ...columns.map(() => '---')], ...rows];
    return `${lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
  }
}

const TABLE = /(<!-- matrix -->\n)(.*?)(<!-- \/matrix -->)/s;

/** What stands between the marks of the README. */
export function tableInReadme(): string {
  return TABLE.exec(readFileSync(README, 'utf8'))?.[2] ?? '';
}

export function writeToReadme(table: string): void {
  writeFileSync(
    README,
    readFileSync(README, 'utf8').replace(TABLE, (_, open, __, close) => open + table + close),
  );
}
