import { BoundedMap } from '../base/bounded-map.js';
import type { EventSink } from '../pipeline/events.js';
import { type HeaderPlan, headerPlanOf } from '../protocol/tool-headers.js';
import { items, JsonError, member, type Span, splice, stringAt, valueAt } from '../wire/json.js';
import { type Message, readMessage } from '../wire/message.js';

/** Lists of which the tools' plans are remembered, and tools of one list. */
const MAX_LISTS = 1_000;
const MAX_TOOLS = 10_000;
const QUOTE = 0x22;
const ANNOTATION = Buffer.from('x-mcp-header');

/** Members of a tool as an answer has them. */
interface Listed extends Span {
  readonly name: string;
  readonly plan: { readonly plan: HeaderPlan } | { readonly invalid: string };
}

/**
 * How the arguments of tools are mirrored in headers, learnt from the lists that pass. Kept by server and by whoever may
 * see the same list.
 */
export class ToolPlans {
  readonly #emit: EventSink;
  readonly #lists = new Map<string, BoundedMap<string, Map<string, HeaderPlan>>>();

  constructor(emit: EventSink) {
    this.#emit = emit;
  }

  find(serverId: string, audience: string, tool: string): HeaderPlan | undefined {
    return this.#lists.get(serverId)?.get(audience)?.get(tool);
  }

  forget(serverId: string): void {
    this.#lists.delete(serverId);
  }

  /**
   * Learns from one page of a tools/list answer; returns it, with `exclude` without the tools that must not be used over
   * HTTP.
   */
  learn(serverId: string, audience: string, answer: Message, exclude: boolean): Message {
    const list = answer.kind === 'result' && answer.body && toolsOf(answer, answer.body.start);
    if (!list) return answer;
    const plans = this.#plansOf(serverId, audience);
    const bad: Listed[] = [];
    for (const tool of list) {
      if ('invalid' in tool.plan) bad.push(tool);
      else if (plans.size < MAX_TOOLS || plans.has(tool.name)) plans.set(tool.name, tool.plan.plan);
    }
    if (!exclude) return answer;
    for (const { name, plan } of bad)
      if ('invalid' in plan) this.#emit({ type: 'tool_excluded', serverId, tool: name, why: plan.invalid });
    return bad.length === 0 ? answer : without(answer, list, new Set(bad));
  }

  #plansOf(serverId: string, audience: string): Map<string, HeaderPlan> {
    const lists = this.#lists.get(serverId) ?? new BoundedMap(MAX_LISTS);
    const plans = lists.get(audience) ?? new Map<string, HeaderPlan>();
    lists.set(audience, plans);
    this.#lists.set(serverId, lists);
    return plans;
  }
}

/** The tools of a result, or undefined where it holds none that can be read. */
function toolsOf({ bytes }: Message, at: number): Listed[] | undefined {
  const annotated = bytes.includes(ANNOTATION) || bytes.includes('\\u');
  try {
    const list = member(bytes, at, 'tools');
    const all = list && items(bytes, list.start);
    return all?.flatMap((span) => listed(bytes, span, annotated) ?? []);
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}

/** `annotated`: some tool of the list may have an annotation, so that its schema must be read. */
function listed(bytes: Buffer, span: Span, annotated: boolean): Listed | undefined {
  const name = member(bytes, span.start, 'name');
  if (!name || bytes[name.start] !== QUOTE) return undefined;
  const schema = annotated ? member(bytes, span.start, 'inputSchema') : undefined;
  const plan = schema ? headerPlanOf(valueAt(bytes, schema)) : { plan: [] };
  return { ...span, name: stringAt(bytes, name.start, name.end), plan };
}

/** The answer without some of its tools; the items that stay keep their bytes. */
function without(answer: Message, list: readonly Listed[], gone: ReadonlySet<Listed>): Message {
  const { bytes, body } = answer;
  const whole = body && member(bytes, body.start, 'tools');
  const all = whole && items(bytes, whole.start);
  if (!whole || !all) return answer;
  const starts = new Set(list.filter((tool) => gone.has(tool)).map(({ start }) => start));
  const kept = all.filter(({ start }) => !starts.has(start));
  const text = `[${kept.map(({ start, end }) => bytes.toString('utf8', start, end)).join(',')}]`;
  return readMessage(splice(bytes, [{ ...whole, text }]));
}
