import type { Clock } from '../base/clock.js';
import { messageEvent } from '../wire/sse-writer.js';

/** A place in one stream: everything of it that was sent later follows. */
export interface Cursor {
  readonly stream: number;
  readonly after: number;
}

interface Entry {
  readonly stream: number;
  readonly sentAt: number;
  readonly frame: Buffer;
}

/** What an entry costs beside its frame, roughly. */
const ENTRY_BYTES = 128;

/**
 * The latest events of one session, so that a stream that broke can go on where it was. Bounded by bytes and by age;
 * what does not fit any more is missing from a replay.
 *
 * Event ids are `<tag>-<stream>-<sequence>`. The tag is the session's own: the ids of others are not understood.
 */
export class ReplayLog {
  readonly #tag: string;
  readonly #maxBytes: number;
  readonly #maxAgeMs: number;
  readonly #clock: Clock;
  /** By sequence number, in its order. */
  readonly #entries = new Map<number, Entry>();
  #bytes = 0;
  #sequence = 0;

  /** `tag` holds no more than letters, digits and `_`. */
  constructor(tag: string, maxBytes: number, maxAgeMs: number, clock: Clock) {
    this.#tag = tag;
    this.#maxBytes = maxBytes;
    this.#maxAgeMs = maxAgeMs;
    this.#clock = clock;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Id of the place behind everything that was sent so far. */
  placeOf(stream: number): string {
    return `${this.#tag}-${stream}-${this.#sequence}`;
  }

  /** Whether an event of this size can be kept at all. */
  fits(messageBytes: number): boolean {
    return messageBytes + ENTRY_BYTES <= this.#maxBytes;
  }

  /** Makes an event of a message, keeps it, and returns it. */
  append(stream: number, message: Buffer): Buffer {
    this.#sequence++;
    const frame = messageEvent(message, this.placeOf(stream));
    this.#entries.set(this.#sequence, { stream, sentAt: this.#clock.now(), frame });
    this.#bytes += frame.length + ENTRY_BYTES;
    this.#trim();
    return frame;
  }

  /** The place that an event id names, or undefined where it is none of this session's. */
  locate(eventId: string): Cursor | undefined {
    const [tag, stream, after, ...rest] = eventId.split('-', 4);
    if (tag !== this.#tag || !isNumber(stream) || !isNumber(after) || rest.length > 0) return undefined;
    return { stream: Number(stream), after: Number(after) };
  }

  /** The kept events of one stream behind a place, in order. */
  since(cursor: Cursor): Buffer[] {
    const frames: Buffer[] = [];
    for (const [sequence, entry] of this.#entries)
      if (entry.stream === cursor.stream && sequence > cursor.after) frames.push(entry.frame);
    return frames;
  }

  /** Drops every event; ids stay unique. */
  clear(): void {
    this.#entries.clear();
    this.#bytes = 0;
  }

  #trim(): void {
    const oldestAt = this.#clock.now() - this.#maxAgeMs;
    for (const [sequence, entry] of this.#entries) {
      if (this.#bytes <= this.#maxBytes && entry.sentAt >= oldestAt) return;
      this.#entries.delete(sequence);
      this.#bytes -= entry.frame.length + ENTRY_BYTES;
    }
  }
}

function isNumber(text: string | undefined): boolean {
  return text !== undefined && /^\d{1,15}$/.test(text);
}
