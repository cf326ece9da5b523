import { JsonError, member, repeated, type Span, scanMembers, stringAt } from '../wire/json.js';

/** Where an argument is: the property names that lead to it. */
export interface ArgumentPath {
  readonly path: readonly string[];
}

/** What a call says of one argument, as a header mirrors it. */
export interface Stated {
  readonly text: string;
  readonly isNumber: boolean;
  /** False where the specification leaves open whether there is a header: integers that JavaScript would round. */
  readonly owed: boolean;
}

const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;

/**
 * What a call states of the arguments at these paths; those that are absent, null, an object or an array are not in it.
 * `params` is the range of the call's `params` in `bytes`. Throws JsonError where a member on the way is given twice,
 * so that nobody can tell what is meant.
 */
export function statedArguments<P extends ArgumentPath>(
  wanted: readonly P[],
  bytes: Buffer,
  params: Span | undefined,
): Map<P, Stated> {
  const found = new Map<P, Stated>();
  const all = params && member(bytes, params.start, 'arguments');
  if (all) readBelow(wanted, 0, bytes, all.start, found);
  return found;
}

/** Reads one object once, however many arguments are wanted of it. `depth` steps of each path led here. */
function readBelow<P extends ArgumentPath>(
  wanted: readonly P[],
  depth: number,
  bytes: Buffer,
  at: number,
  found: Map<P, Stated>,
): void {
  if (bytes[at] !== OPEN_BRACE) return;
  const byName = grouped(wanted, depth);
  const seen = new Set<string>();
  scanMembers(bytes, at, (name, nameAt, start, end) => {
    const here = byName.get(name);
    if (!here) return;
    if (seen.has(name)) throw repeated(name, nameAt);
    seen.add(name);
    const deeper = here.filter(({ path }) => path.length > depth + 1);
    if (deeper.length > 0) readBelow(deeper, depth + 1, bytes, start, found);
    const stated = deeper.length === here.length ? undefined : statedAt(bytes, start, end);
    if (stated) for (const one of here) if (one.path.length === depth + 1) found.set(one, stated);
  });
}

function grouped<P extends ArgumentPath>(wanted: readonly P[], depth: number): Map<string, P[]> {
  const byName = new Map<string, P[]>();
  for (const one of wanted) {
    const name = one.path[depth] ?? '';
    const same = byName.get(name);
    if (same) same.push(one);
    else byName.set(name, [one]);
  }
  return byName;
}

/** A value's own type counts, not what the schema wants: the server is the one to complain. */
function statedAt(bytes: Buffer, start: number, end: number): Stated | undefined {
  switch (bytes[start]) {
    case QUOTE:
      return { text: stringAt(bytes, start, end), isNumber: false, owed: true };
    case 0x74:
      return { text: 'true', isNumber: false, owed: true };
    case 0x66:
      return { text: 'false', isNumber: false, owed: true };
    case OPEN_BRACE:
    case 0x5b:
    case 0x6e:
      return undefined;
    default:
      return numberOf(bytes.toString('latin1', start, end));
  }
}

/** A number from its JSON text: an integer's digits are its own, whatever its size. */
function numberOf(json: string): Stated | undefined {
  const digits = integerDigits(json);
  const value = Number(json);
  const rounds = Number.isInteger(value) && !Number.isSafeInteger(value);
  if (digits !== undefined) return { text: digits, isNumber: true, owed: !rounds && Number.isFinite(value) };
  if (!Number.isFinite(value) || rounds) return undefined;
  return { text: String(value), isNumber: true, owed: true };
}

const INTEGER = /^(-?)(\d+)(?:\.0+)?$/;
const DECIMAL = /^-?\d+(?:\.\d+)?$/;

/** `42` for `42.0` and `042`, `0` for `-0`; undefined for what is no integer, or has an exponent. */
function integerDigits(text: string): string | undefined {
  const parts = INTEGER.exec(text);
  if (!parts) return undefined;
  const digits = (parts[2] ?? '').replace(/^0+(?=\d)/, '');
  return digits === '0' ? digits : `${parts[1]}${digits}`;
}

/** Whether a header's text means what the call states; numbers are compared as such, exactly. */
export function means(text: string, { text: stated, isNumber }: Stated): boolean {
  if (text === stated) return true;
  if (isNumber) return DECIMAL.test(text) && numberOf(text)?.text === stated;
  // Half of a surrogate pair is JSON, but no header carries it.
  return Buffer.from(text).equals(Buffer.from(stated));
}

/** What JsonError says, for whoever sent the call. Anything else that was thrown is thrown again. */
export function ambiguity(thrown: unknown): string {
  if (thrown instanceof JsonError) return thrown.message;
  throw thrown;
}
