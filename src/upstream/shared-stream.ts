import { backoffMs } from '../base/backoff.js';
import type { GatewayError } from '../base/errors.js';
import { messageOf } from '../base/errors.js';
import type { Random } from '../base/random.js';
import { EVENT_STREAM_TYPE, essence } from '../wire/media.js';
import type { SseEvent } from '../wire/sse-reader.js';
import { drain, plainBody, readEvents, readStart } from './body.js';
import type { Reply } from './http-call.js';
import { headerOf, isHeaderSafeEventId } from './http-headers.js';
import type { RemotePeer } from './peer.js';
import { jsonRpcError, retryAfterMs, speaksOfLostSession } from './refusal.js';

export interface SharedStreamDeps {
  readonly peer: RemotePeer;
  readonly random: Random;
  readonly maxEventBytes: number;
  readonly hasSession: boolean;
  readonly open: (lastEventId: string | undefined) => Promise<Reply>;
  /** An event with data. */
  readonly data: (data: Buffer) => void;
  /** Something may have been missed. */
  readonly lost: () => void;
  readonly sessionLost: (error: GatewayError) => void;
  readonly warn: (message: string) => void;
}

const BACKOFF = { baseMs: 1_000, maxMs: 30_000 };
const MAX_RETRY_MS = 5 * 60_000;
/** A stream that lived this long was a good one, even if it was silent. */
const GOOD_LIFE_MS = 10_000;

/** How an attempt went. `stop`: there is no stream, now or later. */
type Attempt = { readonly kind: 'stop' } | { readonly kind: 'again'; readonly afterMs: number };

const STOP: Attempt = { kind: 'stop' };
const AGAIN: Attempt = { kind: 'again', afterMs: 0 };

/**
 * The one general stream of a session (GET), held open as long as the link lives and reopened with growing delays. A
 * server without one, and any failure of it, leaves the requests' own streams alone.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#listening-for-messages-from-the-server
 */
export class SharedStream {
  readonly #deps: SharedStreamDeps;
  #failures = 0;
  #lastEventId: string | undefined;
  #retryMs: number | undefined;
  #everOpen = false;
  #stopped = false;

  constructor(deps: SharedStreamDeps) {
    this.#deps = deps;
  }

  /** Runs until stopped, until the peer ends, or until the server turns out to have no stream. Never rejects. */
  async run(): Promise<void> {
    try {
      while (!this.#stopped) {
        const attempt = await this.#attempt();
        if (attempt.kind === 'stop' || this.#stopped) return;
        await this.#deps.peer.pause(Math.max(attempt.afterMs, this.#delayMs()));
      }
    } catch (error) {
      if (!this.#stopped) this.#deps.warn(`the notification stream is given up: ${messageOf(error)}`);
    }
  }

  /** From here on nothing is reported or reopened. The stream itself ends with the peer. */
  stop(): void {
    this.#stopped = true;
  }

  #delayMs(): number {
    const { random } = this.#deps;
    if (this.#retryMs === undefined) return backoffMs(Math.max(1, this.#failures), BACKOFF, random);
    return Math.max(Math.min(this.#retryMs, MAX_RETRY_MS), backoffMs(this.#failures, BACKOFF, random));
  }

  async #attempt(): Promise<Attempt> {
    let reply: Reply;
    try {
      reply = await this.#deps.open(this.#lastEventId);
    } catch {
      this.#failures++;
      return AGAIN;
    }
    if (reply.status < 200 || reply.status > 299) return this.#refused(reply);
    if (essence(headerOf(reply.headers, 'content-type')) === EVENT_STREAM_TYPE) return this.#hold(reply);
    drain(reply.body, this.#deps.peer.clock);
    return STOP;
  }

  async #hold(reply: Reply): Promise<Attempt> {
    const { peer, maxEventBytes } = this.#deps;
    // Behind a gap that the server does not replay, news may be missing, whatever was read during it.
    if (this.#everOpen && this.#lastEventId === undefined) this.#deps.lost();
    this.#everOpen = true;
    const openedAt = peer.clock.now();
    this.#failures++;
    try {
      await readEvents(peer, plainBody(peer, reply), maxEventBytes, (event) => this.#take(event));
    } catch (error) {
      // What cannot be read would be replayed for ever.
      this.#lastEventId = undefined;
      if (!this.#stopped) this.#deps.warn(messageOf(error));
    }
    if (this.#stopped) return STOP;
    if (peer.clock.now() - openedAt >= GOOD_LIFE_MS) this.#failures = 0;
    this.#deps.lost();
    return AGAIN;
  }

  #take(event: SseEvent): void {
    if (this.#stopped) return;
    if (event.retryMs !== undefined) this.#retryMs = event.retryMs;
    this.#lastEventId = event.id !== undefined && isHeaderSafeEventId(event.id) ? event.id : undefined;
    if (event.data.length === 0 || event.event !== 'message') return;
    this.#failures = 0;
    this.#deps.data(event.data);
  }

  async #refused(reply: Reply): Promise<Attempt> {
    const { peer, hasSession, sessionLost, warn } = this.#deps;
    const { status } = reply;
    const body = await readStart(plainBody(peer, reply), 64 * 1024);
    if (hasSession && this.#meansSessionLost(status, body)) {
      sessionLost(peer.error('session_lost', `no longer knows the session (${status})`, { status }));
      return STOP;
    }
    if (status === 401 || status === 403) warn(`the notification stream was refused (${status})`);
    if (status < 500 ? status !== 409 && status !== 429 && status !== 408 : status === 501) return STOP;
    this.#failures++;
    const wait = retryAfterMs(headerOf(reply.headers, 'retry-after'), peer.clock.now()) ?? 0;
    return { kind: 'again', afterMs: Math.min(wait, MAX_RETRY_MS) };
  }

  /**
   * 404 means both "no such session" and, with servers that do not route GET at all, "no such stream". The second is
   * assumed where the stream was never open and the body does not speak of a session: otherwise such a server would
   * be given a new session without end.
   */
  #meansSessionLost(status: number, body: Buffer): boolean {
    if (status === 404 && this.#everOpen) return true;
    return (
      (status === 404 || status === 400 || status === 410) && speaksOfLostSession(jsonRpcError(body), body)
    );
  }
}
