import type { ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.js';
import { unguessableId } from '../base/random.js';
import type { Caller } from '../pipeline/exchange.js';
import { KEEP_ALIVE_COMMENT, primingEvent } from '../wire/sse-writer.js';
import type { DueList } from './due-list.js';
import { type Due, EventStream } from './event-stream.js';
import type { PostReply } from './post-reply.js';
import { type Cursor, ReplayLog } from './replay.js';
import type { Outlet } from './reply.js';
import { sendEmpty } from './respond.js';
import type { Session } from './session.js';

/** Number of the general stream; those of POSTs count from 1. */
const GENERAL = 0;
/** From here on clients understand an event without data. */
const PRIMING_SINCE = '2025-11-25';
/** How long an agent is to wait before it comes back for a broken stream. */
const RETRY_MS = 1_000;

/** What all sessions of one listener share: their timers and bounds. */
export interface StreamContext {
  readonly clock: Clock;
  readonly replayMaxBytes: number;
  readonly resumeMs: number;
  /** Requests whose answer takes a while: they become streams that can be resumed. */
  readonly slow: DueList<Due>;
  /** Requests that may have to become streams, and open streams that need a sign of life. */
  readonly keepAlive: DueList<Due>;
  /** Replies that nobody reads at present. */
  readonly lingering: DueList<PostReply>;
  /** Logs in which something is kept. */
  readonly logs: DueList<ReplayLog>;
  /** A session has been in use just now. */
  readonly touch: (session: HttpSession) => void;
}

/** A session over Streamable HTTP: its general stream, the streams of its POSTs, and what may be asked for again. */
export class HttpSession implements Outlet {
  readonly session: Session;
  /** Who began it; nobody else may use it, whatever token they bring. */
  readonly principal: string;
  /** Caller of the latest request. */
  caller: Caller;
  readonly context: StreamContext;
  #log: ReplayLog | undefined;
  #general: EventStream | undefined;
  #running: Map<number, PostReply> | undefined;
  #lastStream = GENERAL;

  constructor(session: Session, caller: Caller, context: StreamContext) {
    this.session = session;
    this.principal = caller.principal;
    this.caller = caller;
    this.context = context;
  }

  /** True while something of it is open or under way. */
  get busy(): boolean {
    return this.#general !== undefined || this.session.inFlight > 0;
  }

  get listening(): boolean {
    return this.#general !== undefined;
  }

  /** Sends on the general stream. */
  send(bytes: Buffer): boolean {
    if (!this.#general?.ready()) return false;
    return this.#general.write(this.keep(GENERAL, bytes));
  }

  /** Opens the general stream, in place of one that is open; behind `cursor` it first repeats what was missed. */
  listen(res: ServerResponse, caller: Caller, cursor?: Cursor): void {
    this.#general?.end();
    const gone = () => this.#unlisten(stream);
    const stream = new EventStream(res, this.context.keepAlive, gone, this.opening(GENERAL, cursor));
    for (const frame of cursor ? this.since(cursor) : []) stream.write(frame);
    this.#general = stream;
    this.session.listen(this, caller);
  }

  /** Begins the stream of a POST; its number names it in event ids. */
  openStream(reply: PostReply): number {
    this.#running ??= new Map();
    this.#running.set(++this.#lastStream, reply);
    return this.#lastStream;
  }

  closeStream(number: number): void {
    this.#running?.delete(number);
    this.context.touch(this);
  }

  /** The reply whose stream a cursor is in, while it is not complete. */
  running(cursor: Cursor): PostReply | undefined {
    return this.#running?.get(cursor.stream);
  }

  isGeneral(cursor: Cursor): boolean {
    return cursor.stream === GENERAL;
  }

  /** First bytes of a stream: an id to resume from, where the client understands one and has none yet. */
  opening(stream: number, cursor?: Cursor): Buffer {
    if (cursor || !this.primes) return KEEP_ALIVE_COMMENT;
    return primingEvent(this.#replayLog().placeOf(stream), RETRY_MS);
  }

  /** Whether the agent understands an event that is only a place to resume from. */
  get primes(): boolean {
    return (this.session.revision ?? this.session.profile.revision) >= PRIMING_SINCE;
  }

  /** Makes an event of a message and keeps it for resumption. */
  keep(stream: number, bytes: Buffer): Buffer {
    const log = this.#replayLog();
    const frame = log.append(stream, bytes);
    this.context.logs.add(log);
    return frame;
  }

  /** Whether a message can be kept for an agent that is not there. */
  fits(bytes: Buffer): boolean {
    return this.#replayLog().fits(bytes.length);
  }

  /** The place that a `Last-Event-ID` names in this session, if it does. */
  locate(eventId: string): Cursor | undefined {
    return this.#log?.locate(eventId);
  }

  since(cursor: Cursor): Buffer[] {
    return this.#log?.since(cursor) ?? [];
  }

  /** Repeats the rest of a stream that is complete, or says that nothing follows (204: do not come back). */
  repeat(res: ServerResponse, cursor: Cursor): void {
    const missed = this.since(cursor);
    if (missed.length === 0) return sendEmpty(res, 204);
    const stream = new EventStream(res, this.context.keepAlive, () => {});
    for (const frame of missed) stream.write(frame);
    stream.end();
  }

  /** Ends the session: requests under way with an error, streams in good order. */
  end(why?: Parameters<Session['end']>[0]): void {
    this.session.end(why);
    this.endGeneral();
    if (this.#log) this.context.logs.delete(this.#log);
    this.#log?.clear();
  }

  /** Ends the general stream in good order; the session goes on. */
  endGeneral(): void {
    this.#general?.end();
    this.#general = undefined;
    this.session.unlisten(this);
  }

  #unlisten(stream: EventStream): void {
    if (this.#general !== stream) return;
    this.#general = undefined;
    this.session.unlisten(this);
    this.context.touch(this);
  }

  #replayLog(): ReplayLog {
    const { clock, replayMaxBytes, resumeMs } = this.context;
    this.#log ??= new ReplayLog(tag(), replayMaxBytes, resumeMs, clock);
    return this.#log;
  }
}

function tag(): string {
  return unguessableId().replaceAll('-', '_').slice(0, 12);
}
