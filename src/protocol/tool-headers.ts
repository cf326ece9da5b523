import { JsonError, member, type Span, valueAt } from '../wire/json.js';
import { decodeHeaderValue, encodeHeaderValue } from '../wire/mcp-headers.js';

/**
 * Arguments that are mirrored in HTTP headers, as a tool's `inputSchema` says by `x-mcp-header`.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters
 */

/** One argument of a tool that its callers mirror in a header. */
export interface MirroredParam {
  /** The whole name, as the schema spells its end: `Mcp-Param-Region`. */
  readonly header: string;
  /** The property names that lead to the argument. */
  readonly path: readonly string[];
  readonly type: 'string' | 'integer' | 'boolean';
}

/** The mirrored arguments of one tool; empty where there are none. */
export type HeaderPlan = readonly MirroredParam[];

const ANNOTATION = 'x-mcp-header';
const PREFIX = 'Mcp-Param-';
/** A header's name may consist of these. https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2 */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);
/** Nesting of a schema that is looked at; nobody mirrors an argument from below it. */
const MAX_DEPTH = 64;

/** Keywords whose values are data, not schemas. */
const LITERALS: ReadonlySet<string> = new Set(['default', 'const', 'enum', 'examples', ANNOTATION]);
/** Keywords whose values are schemas by name. */
const MAPS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions',
]);

type Schema = Readonly<Record<string, unknown>>;

/** Where in a schema we are. `reachable`: `properties` alone led here. */
interface Place {
  readonly path: readonly string[];
  readonly reachable: boolean;
}

/** Reads a tool's schema; `invalid` says why the tool must not be used over HTTP. */
export function headerPlanOf(
  inputSchema: unknown,
): { readonly plan: HeaderPlan } | { readonly invalid: string } {
  const plan: MirroredParam[] = [];
  const invalid = collect(inputSchema, { path: [], reachable: true }, plan);
  if (invalid !== undefined) return { invalid };
  const names = new Set<string>();
  for (const { header } of plan) {
    const name = header.toLowerCase();
    if (names.has(name)) return { invalid: `two properties are mirrored in ${header}` };
    names.add(name);
  }
  return { plan };
}

/** Adds what a schema mirrors to `plan`. Returns what is wrong, if anything. */
function collect(schema: unknown, place: Place, plan: MirroredParam[]): string | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  if (place.path.length > MAX_DEPTH) return `the schema is nested deeper than ${MAX_DEPTH} levels`;
  const here = schema as Schema;
  const wrong = Object.hasOwn(here, ANNOTATION) ? annotated(here, place, plan) : undefined;
  if (wrong !== undefined) return wrong;
  for (const [keyword, below] of Object.entries(here)) {
    const invalid = LITERALS.has(keyword) ? undefined : collectBelow(keyword, below, place, plan);
    if (invalid !== undefined) return invalid;
  }
  return undefined;
}

function collectBelow(
  keyword: string,
  below: unknown,
  { path, reachable }: Place,
  plan: MirroredParam[],
): string | undefined {
  if (!MAPS.has(keyword)) return collect(below, { path: [...path, keyword], reachable: false }, plan);
  if (typeof below !== 'object' || below === null) return undefined;
  const stays = reachable && keyword === 'properties';
  for (const [name, schema] of Object.entries(below)) {
    const invalid = collect(schema, { path: [...path, name], reachable: stays }, plan);
    if (invalid !== undefined) return invalid;
  }
  return undefined;
}

function annotated(schema: Schema, { path, reachable }: Place, plan: MirroredParam[]): string | undefined {
  const name = schema[ANNOTATION];
  const where = path.join('.').slice(0, 100) || 'the schema itself';
  if (typeof name !== 'string' || !TOKEN.test(name)) return `${ANNOTATION} of ${where} is no header name`;
  if (!reachable || path.length === 0)
    return `${ANNOTATION} of ${where} is not on a property of the arguments`;
  const { type } = schema;
  if (!TYPES.has(type)) return `${ANNOTATION} of ${where} is on a type that no header mirrors`;
  plan.push({ header: PREFIX + name, path, type: type as MirroredParam['type'] });
  return undefined;
}

/** Headers that mirror the arguments of a call, by name. `params` is the range of the call's `params` in `bytes`. */
export function mirroredHeaders(
  plan: HeaderPlan,
  bytes: Buffer,
  params: Span | undefined,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const param of plan) {
    const text = textOf(param, bytes, params);
    if (text !== undefined) headers[param.header.toLowerCase()] = encodeHeaderValue(text);
  }
  return headers;
}

/**
 * What is wrong with the headers of a call, as a sentence without any value; undefined: nothing. `header` looks one up by
 * its name in small letters.
 */
export function headerMismatch(
  plan: HeaderPlan,
  bytes: Buffer,
  params: Span | undefined,
  header: (name: string) => string | undefined,
): string | undefined {
  for (const param of plan) {
    const expected = textOf(param, bytes, params);
    const given = header(param.header.toLowerCase());
    const where = `argument ${param.path.join('.')}`;
    if (given === undefined && expected === undefined) continue;
    if (given === undefined) return `The header ${param.header} is missing for ${where}`;
    if (expected === undefined) return `The header ${param.header} is there without ${where}`;
    const decoded = decodeHeaderValue(given);
    if (decoded === undefined) return `The header ${param.header} cannot be decoded`;
    if (!isSame(param, decoded, expected)) return `The header ${param.header} differs from ${where}`;
  }
  return undefined;
}

const NUMBER = /^[-+]?\d{1,400}(\.\d{1,400})?([eE][-+]?\d{1,4})?$/;

function isSame({ type }: MirroredParam, given: string, expected: string): boolean {
  return (
    given === expected || (type === 'integer' && NUMBER.test(given) && Number(given) === Number(expected))
  );
}

/** The text that mirrors an argument; undefined where it is absent, null, or of another type than the schema says. */
function textOf({ path, type }: MirroredParam, bytes: Buffer, params: Span | undefined): string | undefined {
  const span = params && argument(bytes, params, path);
  if (!span) return undefined;
  const value = valueAt(bytes, span);
  switch (type) {
    case 'string':
      return typeof value === 'string' ? value : undefined;
    case 'boolean':
      return typeof value === 'boolean' ? String(value) : undefined;
    case 'integer':
      return Number.isSafeInteger(value) ? String(value) : undefined;
  }
}

function argument(bytes: Buffer, params: Span, path: readonly string[]): Span | undefined {
  try {
    return member(bytes, params.start, 'arguments', ...path);
  } catch (error) {
    // Named twice: nobody can say what is mirrored.
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}
