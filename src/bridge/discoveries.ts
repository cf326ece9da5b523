import { BoundedMap } from '../base/bounded-map.js';
import type { Clock } from '../base/clock.js';
import { SingleFlight } from '../base/single-flight.js';
import { valueAt } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import { bodyOf } from './members.js';

const MAX_KEPT = 1_000;
/** Agents that arrive together are greeted by one answer, whatever its server says of keeping it. */
const MIN_MS = 5_000;
/** What a server offers is asked for anew so often, however long it may be kept. */
const MAX_MS = 60_000;

interface Kept {
  readonly answer: Message;
  readonly until: number;
}

/** What servers said of themselves lately, for the agents that arrive. */
export class Discoveries {
  readonly #clock: Clock;
  readonly #kept = new BoundedMap<string, Kept>(MAX_KEPT);
  readonly #flights = new SingleFlight<Message>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The DiscoverResult of a key, asked for with `ask` where there is none. An error is not kept. Rejects as `ask` does. */
  async of(key: string, ask: () => Promise<Message>): Promise<Message> {
    const kept = this.#kept.get(key);
    if (kept && this.#clock.now() < kept.until) return kept.answer;
    return await this.#flights.run(key, async () => {
      const answer = await ask();
      if (answer.kind === 'result')
        this.#kept.set(key, { answer, until: this.#clock.now() + keptMs(answer) });
      return answer;
    });
  }
}

function keptMs(answer: Message): number {
  const span = bodyOf(answer, 'ttlMs');
  const ttlMs = span && valueAt(answer.bytes, span);
  return typeof ttlMs === 'number' ? Math.min(Math.max(ttlMs, MIN_MS), MAX_MS) : MAX_MS;
}
