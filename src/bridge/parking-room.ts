/** Least number of calls that one caller may leave waiting, however few may wait in all. */
const LEAST_SHARE = 10;

/** Where one call waits while its agent is asked. */
export interface Place {
  /** False where as many calls wait as may: nothing is taken then. */
  take(): boolean;
  give(): void;
}

/** How many calls may wait for their agents at a time: so many in all, and a tenth of it for any one caller. */
export class ParkingRoom {
  readonly #max: number;
  readonly #byOwner = new Map<string, number>();
  #taken = 0;
  #closed = false;

  constructor(max: number) {
    this.#max = max;
  }

  get taken(): number {
    return this.#taken;
  }

  /** A place for one call of that caller; each `take` is followed by one `give`. */
  placeFor(owner: string): Place {
    return { take: () => this.#take(owner), give: () => this.#give(owner) };
  }

  /** Nothing is taken from now on. */
  close(): void {
    this.#closed = true;
  }

  #take(owner: string): boolean {
    const own = this.#byOwner.get(owner) ?? 0;
    const share = Math.max(LEAST_SHARE, this.#max / 10);
    if (this.#closed || this.#taken >= this.#max || own >= share) return false;
    this.#taken++;
    this.#byOwner.set(owner, own + 1);
    return true;
  }

  #give(owner: string): void {
    const left = (this.#byOwner.get(owner) ?? 0) - 1;
    this.#taken--;
    if (left > 0) this.#byOwner.set(owner, left);
    else this.#byOwner.delete(owner);
  }
}
