import type { Span } from '../wire/json.js';
import { decodeHeaderValue, encodeHeaderValue } from '../wire/mcp-headers.js';
import { ambiguity, means, type Stated, statedArguments } from './mirrored-arguments.js';

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
/** A header's name may consist of these; a longer one fits into no request. https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2 */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}$/;
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);
/** Steps that may lead to a mirrored argument. */
const MAX_STEPS = 64;
/** Characters of a path that a message shows. */
const SHOWN = 100;

/** Keywords that hold a schema, or an array of schemas. What other keywords hold is data. */
const SCHEMAS: ReadonlySet<string> = new Set([
  'items',
  'prefixItems',
  'additionalItems',
  'unevaluatedItems',
  'contains',
  'additionalProperties',
  'unevaluatedProperties',
  'propertyNames',
  'contentSchema',
  'oneOf',
  'anyOf',
  'allOf',
  'not',
  'if',
  'then',
  'else',
]);
/** Keywords that hold schemas by name. */
const NAMED_SCHEMAS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  'dependencies',
  '$defs',
  'definitions',
]);

type Schema = Readonly<Record<string, unknown>>;

/** A schema within a tool's, and the way to it. */
interface Place {
  readonly schema: unknown;
  readonly step: string;
  readonly from: Place | undefined;
  readonly steps: number;
  /** True where `properties` alone led here. */
  readonly reachable: boolean;
}

/** Reads a tool's schema; `invalid` says why the tool must not be used over HTTP. Never throws, however deep it is. */
export function headerPlanOf(
  inputSchema: unknown,
): { readonly plan: HeaderPlan } | { readonly invalid: string } {
  const plan: MirroredParam[] = [];
  const names = new Set<string>();
  const places: Place[] = [{ schema: inputSchema, step: '', from: undefined, steps: 0, reachable: true }];
  // Grows while it is read.
  for (const place of places) {
    if (typeof place.schema !== 'object' || place.schema === null) continue;
    const schema = place.schema as Schema;
    if (Object.hasOwn(schema, ANNOTATION)) {
      const param = annotated(schema, place);
      if ('invalid' in param) return param;
      const name = param.header.toLowerCase();
      if (names.has(name)) return { invalid: `two properties are mirrored in ${param.header}` };
      names.add(name);
      plan.push(param);
    }
    for (const [keyword, below] of Object.entries(schema)) open(keyword, below, place, places);
  }
  return { plan };
}

/** Adds the schemas that a keyword holds to what is still to be read. */
function open(keyword: string, below: unknown, from: Place, places: Place[]): void {
  if (typeof below !== 'object' || below === null) return;
  const steps = from.steps + 1;
  if (NAMED_SCHEMAS.has(keyword)) {
    const reachable = from.reachable && keyword === 'properties';
    for (const [step, schema] of Object.entries(below)) places.push({ schema, step, from, steps, reachable });
  } else if (SCHEMAS.has(keyword)) {
    for (const schema of Array.isArray(below) ? (below as unknown[]) : [below])
      places.push({ schema, step: keyword, from, steps, reachable: false });
  }
}

function annotated(schema: Schema, place: Place): MirroredParam | { readonly invalid: string } {
  const name = schema[ANNOTATION];
  const path = pathTo(place);
  const where = path.join('.').slice(0, SHOWN) || 'the schema itself';
  const wrong = (why: string) => ({ invalid: `${ANNOTATION} of ${where} ${why}` });
  if (typeof name !== 'string' || !TOKEN.test(name)) return wrong('is no header name');
  if (!place.reachable || place.steps === 0) return wrong('is not on a property of the arguments');
  if (place.steps > MAX_STEPS) return wrong(`is more than ${MAX_STEPS} steps deep`);
  if (!TYPES.has(schema['type'])) return wrong('is on a type that no header mirrors');
  return { header: PREFIX + name, path, type: schema['type'] as MirroredParam['type'] };
}

/** The steps that led to a schema, the last of them where there are too many. */
function pathTo(place: Place): string[] {
  const path: string[] = [];
  for (let at = place; at.from && path.length <= MAX_STEPS; at = at.from) path.push(at.step);
  return path.reverse();
}

/**
 * Headers that mirror the arguments of a call, by name in small letters; none where a member is given twice. `params` is
 * the range of the call's `params` in `bytes`.
 */
export function mirroredHeaders(
  plan: HeaderPlan,
  bytes: Buffer,
  params: Span | undefined,
): Record<string, string> {
  const headers: Record<string, string> = {};
  try {
    for (const [{ header }, { text }] of statedArguments(plan, bytes, params))
      headers[header.toLowerCase()] = encodeHeaderValue(text);
  } catch (error) {
    ambiguity(error);
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
  if (plan.length === 0) return undefined;
  let stated: Map<MirroredParam, Stated>;
  try {
    stated = statedArguments(plan, bytes, params);
  } catch (error) {
    return ambiguity(error);
  }
  for (const param of plan) {
    const why = mismatch(param, stated.get(param), header(param.header.toLowerCase()));
    if (why !== undefined) return why;
  }
  return undefined;
}

function mismatch(
  param: MirroredParam,
  stated: Stated | undefined,
  given: string | undefined,
): string | undefined {
  const where = `argument ${param.path.join('.').slice(0, SHOWN)}`;
  if (given === undefined)
    return stated?.owed ? `The header ${param.header} is missing for ${where}` : undefined;
  const text = decodeHeaderValue(given);
  if (text === undefined) return `The header ${param.header} cannot be decoded`;
  if (!stated) return `The header ${param.header} is there without ${where}`;
  return means(text, stated) ? undefined : `The header ${param.header} differs from ${where}`;
}
