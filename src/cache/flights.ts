import type { Exchange } from '../pipeline/exchange.js';
import type { Message } from '../wire/message.js';
import { type Fetch, Flight } from './flight.js';

/** Fetches of one list under way at a time; listings that may share none of them wait for one that is yet to begin. */
const MAX_UNDER_WAY = 2;

interface Lane {
  readonly underWay: Set<Flight>;
  waiting: Flight | undefined;
}

/**
 * Listings that come together share one fetch. One that must not share it, for it asks for something newer, begins
 * another; but however fast a server announces changes, two are under way and one waits, no more.
 */
export class Flights {
  readonly #lanes = new Map<string, Lane>();

  /** Joins a fetch under `key`, or begins the one that `make` gives. Rejects as `Flight.wait` does. */
  board(key: string, exchange: Exchange, make: () => Fetch): Promise<Message> {
    const lane = this.#lanes.get(key) ?? { underWay: new Set(), waiting: undefined };
    const open = openFlight(lane, exchange.fresh);
    if (open) return open.wait(exchange);
    this.#lanes.set(key, lane);
    const flight = new Flight(make(), (over) => this.#leave(key, lane, over));
    const answer = flight.wait(exchange);
    if (lane.underWay.size < MAX_UNDER_WAY) launch(lane, flight);
    else lane.waiting = flight;
    return answer;
  }

  /** The flight is over: its room is free for the one that waits. */
  #leave(key: string, lane: Lane, flight: Flight): void {
    const next = lane.waiting;
    if (next === flight) lane.waiting = undefined;
    else if (lane.underWay.delete(flight) && next) {
      lane.waiting = undefined;
      launch(lane, next);
    }
    if (lane.underWay.size === 0 && this.#lanes.get(key) === lane) this.#lanes.delete(key);
  }
}

function launch({ underWay }: Lane, flight: Flight): void {
  underWay.add(flight);
  void flight.launch();
}

/** A flight that a listing may share: one under way whose answer will be current, or any that has not begun. */
function openFlight({ underWay, waiting }: Lane, fresh: boolean): Flight | undefined {
  const shared = fresh ? undefined : [...underWay].findLast((flight) => flight.current);
  return shared ?? waiting;
}
