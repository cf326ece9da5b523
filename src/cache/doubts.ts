/**
 * Counts, for each server, the times at which something may have been missed: its link or its notification stream
 * broke. What was asked for earlier is asked for again, but may be served while the server cannot be reached.
 */
export class Doubts {
  readonly #counts = new Map<string, number>();

  doubt(serverId: string): void {
    this.#counts.set(serverId, this.count(serverId) + 1);
  }

  count(serverId: string): number {
    return this.#counts.get(serverId) ?? 0;
  }
}
