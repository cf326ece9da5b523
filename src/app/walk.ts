/** One page of a list, as the server gave it. */
export interface Page {
  readonly items: readonly unknown[];
  readonly nextCursor: string | undefined;
}

export interface WalkLimits {
  readonly maxPages: number;
  /** Instant after which no further page is asked for. */
  readonly until: number;
}

/**
 * Reads a list page by page until one has no cursor; an empty cursor is one. A cursor that comes again, too many pages
 * or too much time end the walk with what there is, and `warn` is told why.
 * https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination
 */
export async function walkPages(
  read: (cursor: string | undefined) => Promise<Page>,
  limits: WalkLimits,
  now: () => number,
  warn: (why: string) => void,
): Promise<unknown[]> {
  const all: unknown[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let pages = 0; ; pages++) {
    const stop = reasonToStop(cursor, seen, pages, limits, now());
    if (stop) {
      warn(`${stop}; the list is cut after ${all.length} items`);
      return all;
    }
    const page = await read(cursor);
    all.push(...page.items);
    if (page.nextCursor === undefined) return all;
    if (cursor !== undefined) seen.add(cursor);
    cursor = page.nextCursor;
  }
}

function reasonToStop(
  cursor: string | undefined,
  seen: ReadonlySet<string>,
  pages: number,
  limits: WalkLimits,
  now: number,
): string | undefined {
  if (cursor !== undefined && seen.has(cursor)) return 'the server repeats a cursor';
  if (pages >= limits.maxPages) return `the server has more than ${limits.maxPages} pages`;
  if (pages > 0 && now >= limits.until) return 'the server takes too long over its pages';
  return undefined;
}
