import { BoundedMap } from '../base/bounded-map.js';
import type { Exchange } from '../pipeline/exchange.js';
import { type Edit, items, member, type Span, splice } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import type { BridgeDeps } from './deps.js';
import { edited } from './edited.js';
import { readingParams } from './faults.js';
import { bodyOf, isObject, paramOf, stringIn, textOf } from './members.js';
import { pointerEdits } from './schema-pointers.js';

/** Lists of which the wrapped tools are remembered, and such tools of one list. */
const MAX_LISTS = 1_000;
const MAX_TOOLS = 10_000;
/** Where the schema and the value stand in their wrapping. */
const PLACE = '/properties/result';
const SCHEMA = Buffer.from('outputSchema');
const STRUCTURED = Buffer.from('structuredContent');
const ESCAPE = Buffer.from('\\u');

/** What was listed at one place last. */
interface Listed {
  /** Rises with every list that is learnt. */
  readonly at: number;
  readonly names: Set<string>;
}

/**
 * Structured results of tools. Up to 2025-11-25 they are objects, and so are their schemas; what is none is wrapped as
 * `{"result": …}`, the schema in the list and the value in each answer alike.
 * https://modelcontextprotocol.io/specification/2026-07-28/server/tools#output-schema
 */
export class WrappedTools {
  readonly #partitionOf: BridgeDeps['partitionOf'];
  /** Which tools are wrapped though their values may be objects, by who may see the same list. */
  readonly #lists = new BoundedMap<string, Listed>(MAX_LISTS);
  #lastAt = 0;

  constructor(partitionOf: BridgeDeps['partitionOf']) {
    this.#partitionOf = partitionOf;
  }

  /** One page of a list as legacy agents are to see it; which tools are wrapped is remembered. */
  list(exchange: Exchange, answer: Message): Message {
    const tools = bodyOf(answer, 'tools');
    const all = tools && items(answer.bytes, tools.start);
    if (!all) return answer;
    const { names } = this.#listOf(exchange, answer);
    const edits: Edit[] = [];
    const mayWrap = mentions(answer, SCHEMA);
    for (const tool of mayWrap || names.size > 0 ? all : []) {
      const schema = mayWrap ? naturalSchema(answer, tool) : undefined;
      if (schema) edits.push({ ...schema, text: wrappedSchema(answer, schema) });
      note(names, stringIn(answer, member(answer.bytes, tool.start, 'name')), schema !== undefined);
    }
    return edited(answer, edits);
  }

  /** What must be changed in a call's result. */
  call(exchange: Exchange, answer: Message): Edit[] {
    if (!mentions(answer, STRUCTURED)) return [];
    const value = bodyOf(answer, 'structuredContent');
    if (!value || (isObject(answer, value) && !this.#isWrapped(exchange))) return [];
    return [{ ...value, text: `{"result":${textOf(answer, value)}}` }];
  }

  /** The newer of what was listed for the caller alone and for everybody: that is what its agent has. */
  #isWrapped(exchange: Exchange): boolean {
    const { serverId, message } = exchange;
    const tool = readingParams(serverId, () => stringIn(message, paramOf(message, 'name')));
    if (tool === undefined) return false;
    const own = this.#lists.get(keyOf(exchange, this.#placeOf(exchange)));
    const shared = this.#lists.get(keyOf(exchange, EVERYBODY));
    const newer = own && (!shared || own.at > shared.at) ? own : shared;
    return newer?.names.has(tool) ?? false;
  }

  #listOf(exchange: Exchange, answer: Message): Listed {
    const isShared = stringIn(answer, bodyOf(answer, 'cacheScope')) === 'public';
    const key = keyOf(exchange, isShared ? EVERYBODY : this.#placeOf(exchange));
    const listed = { at: ++this.#lastAt, names: this.#lists.get(key)?.names ?? new Set<string>() };
    this.#lists.set(key, listed);
    return listed;
  }

  #placeOf({ serverId, agent, caller }: Exchange): string {
    return this.#partitionOf(serverId, agent, caller);
  }
}

/** No partition is named so: those begin with a server id. */
const EVERYBODY = '';

function keyOf({ serverId, agent }: Exchange, place: string): string {
  return `${serverId}\n${place}\n${agent.profile.fingerprint}`;
}

/** Whether a message may hold a member of that name; it can be spelled with escapes. */
function mentions({ bytes }: Message, name: Buffer): boolean {
  return bytes.includes(name) || bytes.includes(ESCAPE);
}

/** A tool's schema of structured results, where it is not plainly one of objects. */
function naturalSchema(answer: Message, tool: Span): Span | undefined {
  const schema = member(answer.bytes, tool.start, 'outputSchema');
  if (!isObject(answer, schema)) return undefined;
  const type = stringIn(answer, member(answer.bytes, schema.start, 'type'));
  return type === 'object' ? undefined : schema;
}

function note(names: Set<string>, name: string | undefined, isWrapped: boolean): void {
  if (name === undefined) return;
  if (!isWrapped) names.delete(name);
  else if (names.size < MAX_TOOLS) names.add(name);
}

function wrappedSchema(answer: Message, schema: Span): string {
  const { bytes } = answer;
  const dialect = member(bytes, schema.start, '$schema');
  const named =
    stringIn(answer, dialect) === undefined ? '' : `"$schema":${textOf(answer, dialect as Span)},`;
  const edits = pointerEdits(bytes, schema.start, PLACE).map(({ start, end, text }) => ({
    ...{ start: start - schema.start, end: end - schema.start, text },
  }));
  const natural = splice(bytes.subarray(schema.start, schema.end), edits).toString('utf8');
  return `{${named}"type":"object","properties":{"result":${natural}},"required":["result"]}`;
}
