import { type Edit, repeated, scanMembers } from './json.js';

/** What becomes of the members of one object. */
export interface MemberChanges {
  readonly remove?: readonly string[];
  /** Name to JSON text. A member that is there is replaced where it stands; the others come first. */
  readonly set?: Readonly<Record<string, string>>;
}

interface Place {
  readonly name: string;
  readonly nameAt: number;
  readonly start: number;
  readonly end: number;
}

/**
 * The edits that change members of the object at `at`; every other byte stays. Throws JsonError where a member that is
 * to be changed is given twice.
 */
export function memberEdits(bytes: Buffer, at: number, { remove = [], set = {} }: MemberChanges): Edit[] {
  const places: Place[] = [];
  const touched = new Set<string>([...remove, ...Object.keys(set)]);
  const seen = new Set<string>();
  scanMembers(bytes, at, (name, nameAt, start, end) => {
    if (touched.has(name)) {
      if (seen.has(name)) throw repeated(name, nameAt);
      seen.add(name);
    }
    places.push({ name, nameAt, start, end });
  });
  const gone = new Set(remove.filter((name) => !Object.hasOwn(set, name)));
  const kept = places.filter(({ name }) => !gone.has(name));
  const replaced = kept
    .filter(({ name }) => Object.hasOwn(set, name))
    .map(({ name, start, end }) => ({ start, end, text: set[name] as string }));
  return [...additions(at, set, seen, kept.length > 0), ...removals(at, places, gone), ...replaced];
}

function additions(
  at: number,
  set: Readonly<Record<string, string>>,
  seen: ReadonlySet<string>,
  more: boolean,
): Edit[] {
  const added = Object.entries(set).filter(([name]) => !seen.has(name));
  if (added.length === 0) return [];
  const text = added.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',');
  return [{ start: at + 1, end: at + 1, text: more ? `${text},` : text }];
}

/** Each run of removed members goes with the comma that parts it from what stays. */
function removals(at: number, places: readonly Place[], gone: ReadonlySet<string>): Edit[] {
  const edits: Edit[] = [];
  let lastKeptEnd = at + 1;
  for (let i = 0; i < places.length; i++) {
    const first = places[i] as Place;
    if (!gone.has(first.name)) {
      lastKeptEnd = first.end;
      continue;
    }
    while (i + 1 < places.length && gone.has((places[i + 1] as Place).name)) i++;
    const next = places[i + 1];
    if (next) edits.push({ start: first.nameAt, end: next.nameAt, text: '' });
    else edits.push({ start: lastKeptEnd, end: (places[i] as Place).end, text: '' });
  }
  return edits;
}
