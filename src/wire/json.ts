/**
 * JSON by byte ranges. A message is understood where the gateway must understand it and copied elsewhere, so that
 * number spellings, key order, escapes and unknown members leave as they came.
 *
 * The scanner accepts exactly the JSON of RFC 8259; malformed text is refused, never repaired.
 */

/** Half-open byte range `[start, end)`. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Malformed JSON, or a member given twice where the gateway must choose one. */
export class JsonError extends Error {
  override readonly name = 'JsonError';
  /** Byte offset at which the text stopped making sense. */
  readonly at: number;
  /** True when the text is JSON, but names one member twice. */
  readonly repeated: boolean;

  constructor(message: string, at: number, repeated = false) {
    super(`${message} at byte ${at}`);
    this.at = at;
    this.repeated = repeated;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Offset of the first byte at or after `at` that is not white space. */
export function skipSpace(bytes: Uint8Array, at: number): number {
  let i = at;
  for (;;) {
    const c = bytes[i];
    if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return i;
    i++;
  }
}

/** Offset just behind the string whose opening quote is at `at`. */
function skipString(bytes: Uint8Array, at: number): number {
  let i = at + 1;
  const end = bytes.length;
  while (i < end) {
    const c = bytes[i] as number;
    if (c === QUOTE) return i + 1;
    if (c < 0x20) throw new JsonError('Control character in a string', i);
    if (c === BACKSLASH) {
      const escaped = bytes[i + 1];
      if (escaped === 0x75) {
        for (let k = 2; k < 6; k++) if (!isHex(bytes[i + k])) throw new JsonError('Bad \\u escape', i);
        i += 6;
        continue;
      }
      if (escaped === undefined || !'"\\/bfnrt'.includes(String.fromCharCode(escaped)))
        throw new JsonError('Bad escape', i);
      i += 2;
      continue;
    }
    i++;
  }
  throw new JsonError('Unterminated string', at);
}

function isHex(c: number | undefined): boolean {
  return (
    c !== undefined && ((c >= 0x30 && c <= 0x39) || (c >= 0x41 && c <= 0x46) || (c >= 0x61 && c <= 0x66))
  );
}

function isDigit(c: number | undefined): boolean {
  return c !== undefined && c >= 0x30 && c <= 0x39;
}

function skipDigits(bytes: Uint8Array, at: number): number {
  let i = at;
  if (!isDigit(bytes[i])) throw new JsonError('Bad number', at);
  while (isDigit(bytes[i])) i++;
  return i;
}

function skipNumber(bytes: Uint8Array, at: number): number {
  let i = at;
  if (bytes[i] === 0x2d) i++;
  i = bytes[i] === 0x30 ? i + 1 : skipDigits(bytes, i);
  if (bytes[i] === 0x2e) i = skipDigits(bytes, i + 1);
  const exponent = bytes[i];
  if (exponent === 0x65 || exponent === 0x45) {
    const sign = bytes[i + 1];
    i = skipDigits(bytes, sign === 0x2b || sign === 0x2d ? i + 2 : i + 1);
  }
  return i;
}

function skipLiteral(bytes: Uint8Array, at: number, literal: string): number {
  for (let k = 0; k < literal.length; k++)
    if (bytes[at + k] !== literal.charCodeAt(k)) throw new JsonError('Unexpected text', at);
  return at + literal.length;
}

/** Offset just behind the scalar that starts at `at`. */
function skipScalar(bytes: Uint8Array, at: number): number {
  switch (bytes[at]) {
    case QUOTE:
      return skipString(bytes, at);
    case 0x74:
      return skipLiteral(bytes, at, 'true');
    case 0x66:
      return skipLiteral(bytes, at, 'false');
    case 0x6e:
      return skipLiteral(bytes, at, 'null');
    case undefined:
      throw new JsonError('Unexpected end', at);
    default:
      return skipNumber(bytes, at);
  }
}

/** Offset of the value of the member whose name starts at `at`. */
function skipName(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) throw new JsonError('Expected a member name', at);
  const i = skipSpace(bytes, skipString(bytes, at));
  if (bytes[i] !== COLON) throw new JsonError('Expected a colon', i);
  return skipSpace(bytes, i + 1);
}

/** Offset just behind the value that starts at `at`. Not recursive: nesting is bounded by the text alone. */
export function skipValue(bytes: Uint8Array, at: number): number {
  const closers = new ByteStack();
  let i = at;
  for (;;) {
    const c = bytes[i];
    if (c === OPEN_BRACE || c === OPEN_BRACKET) {
      const closer = c === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
      i = skipSpace(bytes, i + 1);
      if (bytes[i] !== closer) {
        closers.push(closer);
        if (closer === CLOSE_BRACE) i = skipName(bytes, i);
        continue;
      }
      i++;
    } else i = skipScalar(bytes, i);
    for (;;) {
      const closer = closers.top;
      if (closer === undefined) return i;
      i = skipSpace(bytes, i);
      if (bytes[i] === closer) {
        closers.pop();
        i++;
        continue;
      }
      if (bytes[i] !== COMMA) throw new JsonError('Expected a comma', i);
      i = skipSpace(bytes, i + 1);
      if (closer === CLOSE_BRACE) i = skipName(bytes, i);
      break;
    }
  }
}

/** One byte for each level of nesting, so that hostile depth costs no more memory than its own text. */
class ByteStack {
  #bytes = new Uint8Array(64);
  #size = 0;

  get top(): number | undefined {
    return this.#size === 0 ? undefined : this.#bytes[this.#size - 1];
  }

  push(byte: number): void {
    if (this.#size === this.#bytes.length) {
      const grown = new Uint8Array(this.#size * 2);
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    this.#bytes[this.#size++] = byte;
  }

  pop(): void {
    this.#size--;
  }
}

/** A name that is given twice where it must not be. */
export function repeated(name: string, at: number): JsonError {
  return new JsonError(`Member ${JSON.stringify(name.slice(0, 64))} is given twice`, at, true);
}

/** Names seen so far in one object; refuses a repeated one in constant time, however many there are. */
class NamesOnce {
  readonly #few: string[] = [];
  #many: Set<string> | undefined;

  add(name: string, at: number): void {
    if (this.#many ? this.#many.has(name) : this.#few.includes(name)) throw repeated(name, at);
    if (this.#many) this.#many.add(name);
    else if (this.#few.push(name) > 16) this.#many = new Set(this.#few);
  }
}

/** Calls `visit` for each member of the object at `at`; returns the offset just behind it. Refuses a repeated name. */
export function forEachMember(
  bytes: Buffer,
  at: number,
  visit: (name: string, start: number, end: number) => void,
): number {
  const names = new NamesOnce();
  return scanMembers(bytes, at, (name, nameAt, start, end) => {
    names.add(name, nameAt);
    visit(name, start, end);
  });
}

/** Calls `visit` for each member of the object at `at`, repeated names too; returns the offset just behind it. */
export function scanMembers(
  bytes: Buffer,
  at: number,
  visit: (name: string, nameAt: number, start: number, end: number) => void,
): number {
  if (bytes[at] !== OPEN_BRACE) throw new JsonError('Expected an object', at);
  let i = skipSpace(bytes, at + 1);
  if (bytes[i] === CLOSE_BRACE) return i + 1;
  for (;;) {
    if (bytes[i] !== QUOTE) throw new JsonError('Expected a member name', i);
    const nameAt = i;
    const nameEnd = skipString(bytes, i);
    i = skipSpace(bytes, nameEnd);
    if (bytes[i] !== COLON) throw new JsonError('Expected a colon', i);
    const start = skipSpace(bytes, i + 1);
    const end = skipValue(bytes, start);
    visit(stringAt(bytes, nameAt, nameEnd), nameAt, start, end);
    i = skipSpace(bytes, end);
    if (bytes[i] === CLOSE_BRACE) return i + 1;
    if (bytes[i] !== COMMA) throw new JsonError('Expected a comma', i);
    i = skipSpace(bytes, i + 1);
  }
}

/** Decoded text of the string literal in `[start, end)`. */
export function stringAt(bytes: Buffer, start: number, end: number): string {
  const raw = bytes.toString('utf8', start + 1, end - 1);
  return raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
}

/**
 * Range of the value at `path` below the object at `at`, or undefined where a step is missing or no object. Refuses a
 * step that is given twice; other members may be.
 */
export function member(bytes: Buffer, at: number, ...path: string[]): Span | undefined {
  let start = at;
  let found: Span | undefined;
  for (const step of path) {
    if (bytes[start] !== OPEN_BRACE) return undefined;
    found = memberNamed(bytes, start, step);
    if (!found) return undefined;
    start = found.start;
  }
  return found;
}

function memberNamed(bytes: Buffer, at: number, wanted: string): Span | undefined {
  let found: Span | undefined;
  scanMembers(bytes, at, (name, nameAt, start, end) => {
    if (name !== wanted) return;
    if (found) throw repeated(name, nameAt);
    found = { start, end };
  });
  return found;
}

/** Ranges of the items of the array at `at`, or undefined when it is no array. */
export function items(bytes: Uint8Array, at: number): Span[] | undefined {
  if (bytes[at] !== OPEN_BRACKET) return undefined;
  const spans: Span[] = [];
  let i = skipSpace(bytes, at + 1);
  if (bytes[i] === CLOSE_BRACKET) return spans;
  for (;;) {
    const end = skipValue(bytes, i);
    spans.push({ start: i, end });
    i = skipSpace(bytes, end);
    if (bytes[i] === CLOSE_BRACKET) return spans;
    if (bytes[i] !== COMMA) throw new JsonError('Expected a comma', i);
    i = skipSpace(bytes, i + 1);
  }
}

/** The value in a range, read by JSON.parse: for understanding, never for sending on. */
export function valueAt(bytes: Buffer, span: Span): unknown {
  return JSON.parse(bytes.toString('utf8', span.start, span.end));
}

/** One replacement of a splice. */
export interface Edit extends Span {
  readonly text: string;
}

/** A copy of `bytes` in which each edit's range is replaced. Edits must not overlap; their order is free. */
export function splice(bytes: Buffer, edits: readonly Edit[]): Buffer {
  const ordered = [...edits].sort((a, b) => a.start - b.start);
  const parts: Buffer[] = [];
  let at = 0;
  for (const edit of ordered) {
    parts.push(bytes.subarray(at, edit.start), Buffer.from(edit.text));
    at = edit.end;
  }
  parts.push(bytes.subarray(at));
  return Buffer.concat(parts);
}
