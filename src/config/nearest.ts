/** The known name that a mistyped one probably means, or undefined where none is near. Case does not count. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const typed = fold(name);
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(typed.length / 3)) + 1;
  for (const candidate of known) {
    const other = fold(candidate);
    if (Math.abs(other.length - typed.length) >= bestDistance) continue;
    const distance = editDistance(typed, other);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** ` (did you mean X?)`, or nothing. */
export function didYouMean(name: string, known: Iterable<string>): string {
  const guess = nearest(name, known);
  return guess === undefined ? '' : ` (did you mean ${guess}?)`;
}

/** Names are short; a hostile one is cut so that the comparison stays cheap. */
function fold(name: string): string {
  return name.slice(0, 64).toLowerCase().replaceAll(/[-_]/g, '');
}

/** Optimal string alignment: insertions, deletions, replacements, and neighbours swapped. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, (before[j - 2] ?? 0) + 1);
      row.push(best);
    }
    before = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
