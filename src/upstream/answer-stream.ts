import { backoffMs } from '../base/backoff.js';
import { GatewayError } from '../base/errors.js';
import type { Random } from '../base/random.js';
import { EVENT_STREAM_TYPE, essence } from '../wire/media.js';
import { idKey, isBatch, type Message, readMessage } from '../wire/message.js';
import type { SseEvent } from '../wire/sse-reader.js';
import { plainBody, readEvents } from './body.js';
import type { Reply } from './http-call.js';
import { headerOf, isHeaderSafeEventId } from './http-headers.js';
import type { RemotePeer } from './peer.js';

export interface AnswerStreamDeps {
  readonly peer: RemotePeer;
  readonly random: Random;
  readonly maxAnswerBytes: number;
  readonly deliver: (message: Message, origin: string) => void;
  readonly dropped: (method: string, why: string) => void;
  /** Asks for what the stream sends behind an event; absent where streams cannot be resumed. */
  readonly resume?: (lastEventId: string, signal: AbortSignal | undefined) => Promise<Reply>;
}

/** Attempts to resume, one after another, that brought nothing. */
const MAX_FRUITLESS = 5;
const RESUME_BACKOFF = { baseMs: 1_000, maxMs: 30_000 };
const MAX_RETRY_MS = 5 * 60_000;

/**
 * The event stream that answers one request: what comes before the answer belongs to the request, the answer ends it,
 * and a stream that breaks before is resumed if the server gave an event id.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery
 */
export class AnswerStream {
  readonly #deps: AnswerStreamDeps;
  readonly #request: Message;
  readonly #signal: AbortSignal | undefined;
  #answered = false;
  #lastEventId: string | undefined;
  #retryMs: number | undefined;
  /** Something came since the last attempt: a message or a new event id. */
  #fruitful = false;
  #unreadable = false;

  constructor(deps: AnswerStreamDeps, request: Message, signal: AbortSignal | undefined) {
    this.#deps = deps;
    this.#request = request;
    this.#signal = signal;
  }

  /** Resolves when the answer was delivered. Rejects with a GatewayError when there will be none. */
  async follow(reply: Reply): Promise<void> {
    let broken = await this.#read(reply);
    for (let fruitless = 0; !this.#answered; ) {
      const { resume } = this.#deps;
      if (!resume || this.#lastEventId === undefined || fruitless >= MAX_FRUITLESS)
        throw this.#unanswered(broken);
      await this.#deps.peer.pause(this.#delayMs(fruitless), this.#signal);
      this.#fruitful = false;
      broken = await this.#again(resume, this.#lastEventId);
      fruitless = this.#fruitful ? 0 : fruitless + 1;
    }
  }

  #delayMs(fruitless: number): number {
    const { random } = this.#deps;
    if (this.#retryMs === undefined) return backoffMs(fruitless + 1, RESUME_BACKOFF, random);
    return Math.max(Math.min(this.#retryMs, MAX_RETRY_MS), backoffMs(fruitless, RESUME_BACKOFF, random));
  }

  /** One attempt to resume; failures that may pass are returned, others end the request. */
  async #again(
    resume: NonNullable<AnswerStreamDeps['resume']>,
    lastEventId: string,
  ): Promise<Error | undefined> {
    let reply: Reply;
    try {
      reply = await resume(lastEventId, this.#signal);
    } catch (error) {
      if (error instanceof GatewayError && isPassing(error)) return error;
      throw error;
    }
    if (reply.status === 200 && essence(headerOf(reply.headers, 'content-type')) === EVENT_STREAM_TYPE)
      return this.#read(reply);
    reply.body.cancel();
    const refused = new Error(`a resumption was answered ${reply.status}`);
    if (reply.status === 409 || reply.status === 429 || reply.status >= 500) return refused;
    throw this.#unanswered(refused);
  }

  #read(reply: Reply): Promise<Error | undefined> {
    const { peer, maxAnswerBytes } = this.#deps;
    return readEvents(
      peer,
      plainBody(peer, reply),
      maxAnswerBytes,
      (event) => this.#take(event),
      () => this.#answered,
    );
  }

  #take(event: SseEvent): void {
    if (event.retryMs !== undefined) this.#retryMs = event.retryMs;
    if (event.id !== this.#lastEventId) {
      this.#lastEventId = event.id !== undefined && isHeaderSafeEventId(event.id) ? event.id : undefined;
      this.#fruitful = true;
    }
    if (event.data.length === 0 || event.event !== 'message') return;
    const message = this.#message(event.data);
    if (!message) return;
    this.#fruitful = true;
    if (message.kind === 'notification' || message.kind === 'request')
      return this.#deps.deliver(message, this.#request.id);
    this.#answer(message);
  }

  #answer(message: Message): void {
    if (idKey(message.id || 'null') !== idKey(this.#request.id))
      return this.#deps.dropped('response', 'it answers another request than its stream belongs to');
    if (this.#answered) return this.#deps.dropped('response', 'its request has been answered');
    this.#answered = true;
    this.#deps.deliver(message, this.#request.id);
  }

  #message(data: Buffer): Message | undefined {
    if (isBatch(data)) throw this.#deps.peer.error('server_protocol', 'answered with a batch of messages');
    try {
      return readMessage(data);
    } catch (error) {
      this.#unreadable = true;
      this.#deps.dropped('', `an event holds no message: ${(error as Error).message}`);
      return undefined;
    }
  }

  #unanswered(cause: Error | undefined): GatewayError {
    const { peer } = this.#deps;
    if (this.#unreadable)
      return peer.error('server_protocol', 'ended its stream with nothing but unreadable answers');
    const how = cause ? `broke (${cause.message})` : 'ended';
    return peer.error('outcome_unknown', `was asked, but its stream ${how} before the answer`, { cause });
  }
}

/** Whether a later attempt may go better. */
function isPassing(error: GatewayError): boolean {
  return (
    error.code === 'server_unavailable' || error.code === 'outcome_unknown' || error.code === 'server_timeout'
  );
}
