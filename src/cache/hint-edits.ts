import type { Scope } from '../protocol/hints.js';
import { type Edit, type Span, skipSpace } from '../wire/json.js';
import { memberEdits } from '../wire/members.js';
import type { HintName, ResultHints } from './result-hints.js';

/** What a result says of itself when it leaves. */
export interface Telling {
  /** Undefined: neither time nor scope. */
  readonly scope: Scope | undefined;
  /** Whether it says that it is complete. */
  readonly type: boolean;
}

type Told = Partial<Record<HintName, string>>;

/** In the order in which they are added. */
const HINT_NAMES: readonly HintName[] = ['resultType', 'ttlMs', 'cacheScope'];
/** JSON text of the remaining time as long as it is not known. */
const NO_TIME = '0';
const TTL_MEMBER = '"ttlMs":';
const CLOSE_BRACE = 0x7d;

/**
 * The edits after which a result says just what `telling` tells: members that are there are replaced where they stand
 * or go, the others come first. `at` is where the result begins. Reads nothing again unless a member goes.
 */
export function hintEdits(bytes: Buffer, at: number, { places }: ResultHints, telling: Telling): Edit[] {
  const told = toldBy(telling);
  const remove = HINT_NAMES.filter((name) => places[name] && told[name] === undefined);
  if (remove.length > 0) return memberEdits(bytes, at, { remove, set: told });
  const edits: Edit[] = [];
  const added: string[] = [];
  for (const name of HINT_NAMES) {
    const text = told[name];
    const place = places[name];
    if (text === undefined) continue;
    if (place) edits.push({ start: place.start, end: place.end, text });
    else added.push(`"${name}":${text}`);
  }
  if (added.length === 0) return edits;
  const more = bytes[skipSpace(bytes, at + 1)] !== CLOSE_BRACE;
  return [{ start: at + 1, end: at + 1, text: added.join(',') + (more ? ',' : '') }, ...edits];
}

function toldBy({ scope, type }: Telling): Told {
  return {
    ...(type ? { resultType: '"complete"' } : {}),
    ...(scope === undefined ? {} : { ttlMs: NO_TIME, cacheScope: JSON.stringify(scope) }),
  };
}

/** Where the time stands once `edits` are made that tell one. */
export function timeHole(at: number, { places }: ResultHints, edits: readonly Edit[]): Span {
  const start = places.ttlMs ? movedBy(edits, places.ttlMs.start) : addedAt(at, edits);
  return { start, end: start + NO_TIME.length };
}

/** Added members come first of all. */
function addedAt(at: number, edits: readonly Edit[]): number {
  const addition = edits.find(({ text }) => text.includes(TTL_MEMBER));
  return at + 1 + (addition?.text.indexOf(TTL_MEMBER) ?? 0) + TTL_MEMBER.length;
}

/** Where the byte at `at`, which no edit touches or which begins one, is once the edits are made. ASCII edits only. */
export function movedBy(edits: readonly Edit[], at: number): number {
  return edits.reduce(
    (sum, { start, end, text }) => (end <= at ? sum + text.length - (end - start) : sum),
    at,
  );
}
