import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { Random } from '../base/random.js';
import type { EventSink } from '../pipeline/events.js';
import { isRepeatable } from '../protocol/methods.js';
import { EVENT_STREAM_TYPE, essence, JSON_TYPE } from '../wire/media.js';
import { type Message, readMessage } from '../wire/message.js';
import { AnswerStream } from './answer-stream.js';
import { drain } from './body.js';
import type { Reply } from './http-call.js';
import { headerOf, isVisibleAscii } from './http-headers.js';
import { readJsonAnswer } from './json-answer.js';
import type { Link, LinkEvents } from './link.js';
import type { RemotePeer } from './peer.js';
import { asAnswerTo, type RefusedAnswer, readRefusal, refusedMessage } from './refused.js';
import { SharedStream } from './shared-stream.js';

export interface HttpLinkDeps {
  readonly peer: RemotePeer;
  readonly events: LinkEvents;
  readonly clock: Clock;
  readonly random: Random;
  readonly emit: EventSink;
  readonly maxAnswerBytes: number;
  /** Until a message that is no request is accepted. */
  readonly acceptTimeoutMs: number;
  /**
   * Asked first when a message is answered outside 200–299: true when somebody else has taken the message over, so that
   * it counts as sent.
   */
  readonly takeOver?: (message: Message, status: number, signal: AbortSignal | undefined) => Promise<boolean>;
}

const CLOSE_TIMEOUT_MS = 2_000;
const LOSS_GRACE_MS = 2_000;
const NO_HEADERS: Readonly<Record<string, string>> = {};
const REVISION_HEADER = 'mcp-protocol-version';
/** The first revision with the `MCP-Protocol-Version` header. */
const VERSION_HEADER_SINCE = '2025-06-18';

/**
 * One session over Streamable HTTP: a POST for each message, a general stream (GET) where the server has one, and a
 * DELETE at the end.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http
 */
export class HttpLink implements Link {
  readonly kind = 'http';
  readonly #deps: HttpLinkDeps;
  readonly #sends = new Set<Promise<void>>();
  #sessionId: string | undefined;
  #revision: string | undefined;
  #shared: SharedStream | undefined;
  /** Why the session is over, by no `close` of ours. */
  #lost: GatewayError | undefined;
  #closing: Promise<void> | undefined;

  constructor(deps: HttpLinkDeps) {
    this.#deps = deps;
  }

  send(
    message: Message,
    signal?: AbortSignal,
    headers: Readonly<Record<string, string>> = NO_HEADERS,
  ): Promise<void> {
    const sent = this.#send(message, signal, headers);
    const settled = () => void this.#sends.delete(sent);
    this.#sends.add(sent);
    sent.then(settled, settled);
    return sent;
  }

  established(revision: string): void {
    if (this.#lost || this.#closing || this.#shared) return;
    this.#revision = revision;
    const { peer, random, maxAnswerBytes } = this.#deps;
    this.#shared = new SharedStream({
      peer,
      random,
      maxEventBytes: maxAnswerBytes,
      hasSession: this.#sessionId !== undefined,
      open: (lastEventId) => this.#openStream(lastEventId, undefined),
      data: (data) => this.#takeShared(data),
      lost: () => {
        if (!this.#closing) this.#deps.events.streamLost();
      },
      sessionLost: (error) => void this.#lose(error),
      warn: (message) => this.#deps.emit({ type: 'warning', serverId: peer.serverId, message }),
    });
    void this.#shared.run();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#shared?.stop();
    if (this.#sessionId !== undefined && !this.#lost) await this.#endSession();
    this.#deps.peer.end(this.#deps.peer.error('outcome_unknown', 'was disconnected before it answered'));
  }

  /** Before any stream is aborted: a request that follows an abort may never leave. */
  async #endSession(): Promise<void> {
    try {
      const headers = this.#sessionHeaders();
      const reply = await this.#deps.peer.ask({
        method: 'DELETE',
        headers,
        repeatable: true,
        deadlineMs: CLOSE_TIMEOUT_MS,
      });
      reply.body.cancel();
    } catch {
      // Whatever went wrong, the session is abandoned: the server's own idle limit will end it.
    }
  }

  /**
   * The server has given the session up. What is under way may yet be answered, or refused in its own right, which tells
   * more than we know; what is not fails as unknown before the link is reported closed.
   */
  async #lose(error: GatewayError): Promise<void> {
    if (this.#lost || this.#closing) return;
    this.#lost = error;
    const { peer, events } = this.#deps;
    const settled = Promise.allSettled(this.#sends);
    if (this.#sends.size > 0) await Promise.race([settled, peer.pause(LOSS_GRACE_MS).catch(() => {})]);
    peer.end(peer.error('outcome_unknown', 'ended the session before it answered'));
    await settled;
    if (!this.#closing) events.closed(error);
  }

  async #send(
    message: Message,
    signal: AbortSignal | undefined,
    headers: Readonly<Record<string, string>>,
  ): Promise<void> {
    const { peer, clock, acceptTimeoutMs } = this.#deps;
    if (this.#lost) throw this.#lost;
    if (this.#closing) throw peer.error('server_unavailable', 'is no longer connected');
    const isRequest = message.kind === 'request';
    const reply = await peer.ask({
      method: 'POST',
      headers: {
        ...this.#sessionHeaders(),
        'content-type': JSON_TYPE,
        accept: `${JSON_TYPE}, ${EVENT_STREAM_TYPE}`,
        ...headers,
      },
      body: message.bytes,
      repeatable: isRequest && isRepeatable(message.method),
      signal,
      ...(isRequest ? {} : { deadlineMs: acceptTimeoutMs }),
    });
    if (reply.status < 200 || reply.status > 299) return this.#refused(message, reply, signal);
    if (!isRequest) return drain(reply.body, clock);
    if (message.method === 'initialize') this.#takeSession(reply);
    // Streams of the modern era, whose messages bring their revision, end with their connection.
    await this.#takeAnswer(message, reply, signal, headers[REVISION_HEADER] === undefined);
  }

  async #refused(message: Message, reply: Reply, signal: AbortSignal | undefined): Promise<void> {
    const { peer, takeOver } = this.#deps;
    try {
      if (await takeOver?.(message, reply.status, signal)) return reply.body.cancel();
    } catch (error) {
      reply.body.cancel();
      throw error;
    }
    const refusal = await readRefusal(peer, reply, this.#sessionId !== undefined);
    if (message.kind !== 'request' || refusal instanceof GatewayError)
      throw refusedMessage(peer, reply.status, refusal);
    const answer: RefusedAnswer = { ...asAnswerTo(message, refusal), refusedWith: reply.status };
    this.#deliver(answer, message.id);
  }

  #takeSession(reply: Reply): void {
    const id = headerOf(reply.headers, 'mcp-session-id');
    if (id === undefined) return;
    if (!isVisibleAscii(id)) {
      reply.body.cancel();
      throw this.#deps.peer.error('server_protocol', 'gave a session id that is not visible ASCII');
    }
    this.#sessionId = id;
  }

  async #takeAnswer(
    message: Message,
    reply: Reply,
    signal: AbortSignal | undefined,
    resumable: boolean,
  ): Promise<void> {
    const { peer, random, maxAnswerBytes } = this.#deps;
    const type = essence(headerOf(reply.headers, 'content-type'));
    if (type === EVENT_STREAM_TYPE) {
      const resume = (lastEventId: string, resumeSignal: AbortSignal | undefined) =>
        this.#openStream(lastEventId, resumeSignal);
      const stream = new AnswerStream(
        {
          peer,
          random,
          maxAnswerBytes,
          deliver: (related, origin) => this.#deliver(related, origin),
          dropped: (method, why) => this.#dropped(method, why),
          ...(resumable ? { resume } : {}),
        },
        message,
        signal,
      );
      return stream.follow(reply);
    }
    if (type === JSON_TYPE)
      return this.#deliver(await readJsonAnswer(peer, message, reply, maxAnswerBytes), message.id);
    reply.body.cancel();
    const what = type === '' ? 'without a content type' : `with ${type.slice(0, 100)}`;
    throw peer.error(
      'server_protocol',
      `answered a request (${reply.status}) ${what}, which is no MCP answer`,
    );
  }

  #openStream(lastEventId: string | undefined, signal: AbortSignal | undefined): Promise<Reply> {
    const resume = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
    const headers = { ...this.#sessionHeaders(), accept: EVENT_STREAM_TYPE, ...resume };
    return this.#deps.peer.ask({ method: 'GET', headers, repeatable: true, signal });
  }

  #sessionHeaders(): Record<string, string> {
    const headers: Record<string, string> = {};
    if (this.#sessionId !== undefined) headers['mcp-session-id'] = this.#sessionId;
    if (this.#revision !== undefined && this.#revision >= VERSION_HEADER_SINCE)
      headers[REVISION_HEADER] = this.#revision;
    return headers;
  }

  #takeShared(data: Buffer): void {
    let message: Message;
    try {
      message = readMessage(data);
    } catch (error) {
      return this.#dropped('', `an event holds no message: ${(error as Error).message}`);
    }
    this.#deliver(message, undefined);
  }

  #deliver(message: Message, origin: string | undefined): void {
    if (!this.#closing) this.#deps.events.message(message, origin);
  }

  #dropped(method: string, why: string): void {
    this.#deps.emit({ type: 'message_dropped', serverId: this.#deps.peer.serverId, method, why });
  }
}
