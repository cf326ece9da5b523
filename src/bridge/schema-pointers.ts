import { type Edit, skipSpace, skipValue, stringAt } from '../wire/json.js';

const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;

/** Keywords whose values are data: what looks like a pointer in them is none. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples']);
/** Keywords whose values are schemas by names that their author chose. */
const NAMED: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
]);
const POINTERS: ReadonlySet<string> = new Set(['$ref', '$dynamicRef']);

/** An object or array that is being read. */
interface Frame {
  readonly closer: number;
  /** True where the names of its members are no keywords. */
  readonly named: boolean;
  /** Edits that were there before it. */
  readonly before: number;
  /** True where its `$id` makes pointers in it start from itself. */
  isRoot: boolean;
}

/**
 * The edits after which the pointers within the JSON Schema at `at` still find their targets when it stands at `place`
 * (`/properties/result`) of another one. The text must be JSON; each byte of it is read once, however deep it is nested.
 * https://json-schema.org/draft/2020-12/json-schema-core#section-8.2
 */
export function pointerEdits(bytes: Buffer, at: number, place: string): Edit[] {
  const edits: Edit[] = [];
  const open: Frame[] = [];
  let named = false;
  let next = at;
  do {
    const closer = closerOf(bytes[next]);
    if (closer === undefined) next = skipValue(bytes, next);
    else {
      open.push({ closer, named: named && closer === CLOSE_BRACE, before: edits.length, isRoot: false });
      next++;
    }
    const step = advance(bytes, next, open, edits, place);
    next = step.at;
    named = step.named;
  } while (open.length > 0);
  return edits;
}

function closerOf(byte: number | undefined): number | undefined {
  if (byte === OPEN_BRACE) return CLOSE_BRACE;
  return byte === OPEN_BRACKET ? CLOSE_BRACKET : undefined;
}

/** Where the next value is that must be looked into, and whether the names in it are no keywords. */
interface Step {
  readonly at: number;
  readonly named: boolean;
}

/** Goes on behind a value, or behind the bracket that opens one, until there is a value to look into, or the end. */
function advance(bytes: Buffer, from: number, open: Frame[], edits: Edit[], place: string): Step {
  let at = skipSpace(bytes, from);
  for (let frame = open.at(-1); frame; frame = open.at(-1)) {
    if (bytes[at] === frame.closer) {
      if (frame.isRoot) edits.length = frame.before;
      open.pop();
      at = skipSpace(bytes, at + 1);
      continue;
    }
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1);
    if (frame.closer === CLOSE_BRACKET) return { at, named: false };
    const nameEnd = skipValue(bytes, at);
    const name = stringAt(bytes, at, nameEnd);
    at = skipSpace(bytes, skipSpace(bytes, nameEnd) + 1);
    if (frame.named) return { at, named: false };
    if (!isLeaf(name, bytes, at)) return { at, named: NAMED.has(name) };
    const end = skipValue(bytes, at);
    if (name === '$id') frame.isRoot = !isFragment(bytes, at, end);
    else if (POINTERS.has(name)) edits.push(...moved(bytes, at, end, place));
    at = skipSpace(bytes, end);
  }
  return { at, named: false };
}

/** Whether there is no schema in the value of this keyword. */
function isLeaf(keyword: string, bytes: Buffer, at: number): boolean {
  return DATA.has(keyword) || keyword === '$id' || (POINTERS.has(keyword) && bytes[at] === QUOTE);
}

/** An older spelling of an anchor, which starts nothing new. */
function isFragment(bytes: Buffer, start: number, end: number): boolean {
  return bytes[start] === QUOTE && stringAt(bytes, start, end).startsWith('#');
}

function moved(bytes: Buffer, start: number, end: number, place: string): Edit[] {
  const pointer = stringAt(bytes, start, end);
  if (pointer !== '#' && !pointer.startsWith('#/')) return [];
  return [{ start, end, text: JSON.stringify(`#${place}${pointer.slice(1)}`) }];
}
