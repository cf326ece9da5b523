/** One page of a list, as the server gave it. */
export interface Page {
  readonly items: readonly unknown[];
  readonly nextCursor: string | undefined;
}

export interface Walk {
  /** Asks for the first page, or for the one that a cursor names. */
  readonly read: (cursor: string | undefined) => Promise<Page>;
  /** Whether a failure of `read` says that the cursor is not, or no longer, good. */
  readonly refusesCursor: (failure: unknown) => boolean;
  readonly now: () => number;
  /** Is told why a list was cut. */
  readonly warn: (why: string) => void;
}

export interface WalkLimits {
  readonly maxPages: number;
  readonly maxItems: number;
  /** After this no further page is asked for. */
  readonly maxMs: number;
}

/** Far above any honest list, and low enough for a process to survive a dishonest one. */
export const WALK_LIMITS: WalkLimits = { maxPages: 1_000, maxItems: 1_000_000, maxMs: 60_000 };

/**
 * Reads a list page by page until one has no cursor; an empty cursor is one. A cursor that comes again, or a limit that
 * is passed, ends the walk with what there is. Where the server refuses a cursor the walk begins anew, once.
 * https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/pagination
 */
export async function walkPages(walk: Walk, limits: WalkLimits = WALK_LIMITS): Promise<unknown[]> {
  let refused = false;
  const read: Walk['read'] = async (cursor) => {
    try {
      return await walk.read(cursor);
    } catch (failure) {
      refused = cursor !== undefined && walk.refusesCursor(failure);
      throw failure;
    }
  };
  try {
    return await allPages({ ...walk, read }, limits);
  } catch (failure) {
    if (refused) return await allPages(walk, limits);
    throw failure;
  }
}

async function allPages(walk: Walk, limits: WalkLimits): Promise<unknown[]> {
  const all: unknown[] = [];
  const seen = new Set<string>();
  const until = walk.now() + limits.maxMs;
  let cursor: string | undefined;
  for (let pages = 1; ; pages++) {
    const { items, nextCursor } = await walk.read(cursor);
    for (const item of items) all.push(item);
    if (nextCursor === undefined) return all;
    if (cursor !== undefined) seen.add(cursor);
    cursor = nextCursor;
    const why = reasonToStop(cursor, seen, pages, all.length, walk.now() >= until, limits);
    if (why === undefined) continue;
    walk.warn(`${why}; the list is cut after ${all.length} items`);
    return all;
  }
}

function reasonToStop(
  cursor: string,
  seen: ReadonlySet<string>,
  pages: number,
  items: number,
  late: boolean,
  limits: WalkLimits,
): string | undefined {
  if (seen.has(cursor)) return 'the server repeats a cursor';
  if (pages >= limits.maxPages) return `the server has more than ${limits.maxPages} pages`;
  if (items >= limits.maxItems) return `the server has more than ${limits.maxItems} items`;
  return late ? 'the server takes too long over its pages' : undefined;
}
