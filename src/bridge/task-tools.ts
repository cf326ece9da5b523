import { BoundedMap } from '../base/bounded-map.js';
import { SingleFlight } from '../base/single-flight.js';
import { items, member, type Span } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import type { BridgedRequest } from './bridged-request.js';
import { bodyOf, stringIn } from './members.js';

/** Lists that something is remembered of. */
const MAX_LISTS = 1_000;
/** A list that goes on for ever is not read to its end. */
const MAX_PAGES = 100;

/** What a list of tools said, as far as it was seen. */
interface Known {
  /** Whether all of it was. */
  whole: boolean;
  readonly required: Set<string>;
}

/**
 * Which tools of legacy servers run as tasks only. A call does not say so, and nor does its failure: it stands in the
 * list of tools.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#tool-level-negotiation
 */
export class TaskTools {
  /** By the place where lists are kept, and what their agents declared. */
  readonly #lists = new BoundedMap<string, Known>(MAX_LISTS);
  readonly #reading = new SingleFlight<Known>();

  /** Learns from a page of a list that an agent is given. Throws JsonError. */
  learn(place: string, page: Message): void {
    const known = this.#lists.get(place);
    if (known) take(page, known.required);
  }

  /** Whether a tool demands to be run as a task; the list is asked for where it was not seen. Rejects with GatewayError. */
  async demand(place: string, tool: string, bridged: BridgedRequest): Promise<boolean> {
    const known = this.#lists.get(place);
    const whole = known?.whole ? known : await this.#reading.run(place, () => this.#read(place, bridged));
    return whole.required.has(tool);
  }

  /** What is asked of a server in nobody's name is asked with a signal of its own. */
  async #read(place: string, bridged: BridgedRequest): Promise<Known> {
    const known: Known = { whole: false, required: new Set() };
    this.#lists.set(place, known);
    const { signal } = new AbortController();
    let cursor: string | undefined;
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const page = await bridged.own('tools/list', cursor === undefined ? {} : { cursor }, signal);
      if (page.kind === 'error') return known;
      take(page, known.required);
      cursor = stringIn(page, bodyOf(page, 'nextCursor'));
      if (cursor === undefined) break;
    }
    known.whole = true;
    return known;
  }
}

/** Notes of each tool of a page whether it demands a task. */
function take(page: Message, required: Set<string>): void {
  const list = page.kind === 'result' ? bodyOf(page, 'tools') : undefined;
  for (const tool of (list && items(page.bytes, list.start)) ?? []) {
    const name = textAt(page, tool, 'name');
    if (name === undefined) continue;
    if (textAt(page, tool, 'execution', 'taskSupport') === 'required') required.add(name);
    else required.delete(name);
  }
}

function textAt(page: Message, tool: Span, ...path: string[]): string | undefined {
  return stringIn(page, member(page.bytes, tool.start, ...path));
}
