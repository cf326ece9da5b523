import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from '../pipeline/exchange.js';
import { isLegacyRevision, isModernRevision, LEGACY_REVISIONS } from '../protocol/revisions.js';
import { accepts, EVENT_STREAM_TYPE, JSON_TYPE } from '../wire/media.js';
import { isBatch, type Message, readMessage } from '../wire/message.js';
import { BATCH_REVISION, readBatch } from './batch.js';
import type { Authenticate } from './callers.js';
import { type Failure, refusal, sessionUnknown, shuttingDown } from './errors.js';
import type { HttpSession, StreamContext } from './http-session.js';
import { type InitializeOptions, initialize } from './initialize.js';
import { readJsonBody } from './json-body.js';
import type { Modern } from './modern.js';
import { isModern } from './modern-request.js';
import { PostReply, type ReplyForm } from './post-reply.js';
import { sendEmpty, sendFailure } from './respond.js';
import type { Sessions } from './sessions.js';

export interface StreamableOptions extends InitializeOptions {
  readonly sessions: Sessions;
  readonly context: StreamContext;
  readonly authenticate: Authenticate;
  /** Takes the messages of the modern era. */
  readonly modern: Modern;
  readonly maxRequestBytes: number;
  /** True once no new request is taken. */
  readonly draining: () => boolean;
}

/** One HTTP request, as far as its headers tell. */
interface Arrival {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly serverId: string;
  readonly found: HttpSession | undefined;
  readonly caller: Caller;
}

type Accepted = Pick<ReplyForm, 'json' | 'events'>;

const NO_HEADERS = {};
const NOT_ACCEPTABLE = refusal(406, 'Accept must admit application/json or text/event-stream');
const NO_STREAM_ACCEPTED = refusal(406, 'Accept must admit text/event-stream');
const SESSION_MISSING = refusal(400, 'The header Mcp-Session-Id is missing');
const BAD_REVISION = refusal(400, `Mcp-Protocol-Version must be one of ${LEGACY_REVISIONS.join(', ')}`);
const SECOND_STREAM = refusal(409, 'The session has an open stream already');

/**
 * The Streamable HTTP endpoint: sessions of the legacy era, and the door to the modern one.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http
 */
export class Streamable {
  readonly #options: StreamableOptions;
  /** The latest `Accept` header and what it admits: agents hardly ever differ in it. */
  #accept: string | undefined;
  #admits: Accepted = { json: true, events: true };

  constructor(options: StreamableOptions) {
    this.#options = options;
  }

  /** Takes one message of an agent, or a batch. Rejects with GatewayError or MessageError. */
  async post(req: IncomingMessage, res: ServerResponse, serverId: string): Promise<void> {
    const accepted = this.#accepted(req.headers.accept);
    if (!accepted.json && !accepted.events) return sendFailure(res, NOT_ACCEPTABLE);
    const arrival = this.#arrive(req, res, serverId);
    const body = await readJsonBody(req, res, this.#options);
    if (!body) return;
    if (arrival.found?.session.revision === BATCH_REVISION && isBatch(body))
      return this.#batch(arrival, readBatch(body), accepted);
    const message = readMessage(body);
    if (isModernRevision(req.headers['mcp-protocol-version']) || (!arrival.found && isModern(message)))
      return this.#options.modern.take({ ...arrival, ...accepted, message, fresh: wantsFresh(req) });
    if (message.method !== 'initialize' || message.kind !== 'request')
      return this.#message(arrival, message, accepted);
    if (this.#options.draining()) return sendFailure(res, shuttingDown(serverId), message.id);
    await initialize(this.#options, { ...arrival, message, ...accepted });
  }

  /** Opens the general stream, or takes up a stream that broke. Throws GatewayError. */
  get(req: IncomingMessage, res: ServerResponse, serverId: string): void {
    if (!accepts(req.headers.accept, EVENT_STREAM_TYPE)) return sendFailure(res, NO_STREAM_ACCEPTED);
    const { found, caller } = this.#arrive(req, res, serverId);
    const refused = this.#refused(req, found, caller, true);
    if (!found || refused) return sendFailure(res, refused ?? sessionUnknown());
    this.#use(found, caller);
    const lastEventId = req.headers['last-event-id'];
    if (lastEventId !== undefined) return takeUp(res, found, caller, String(lastEventId));
    if (found.listening) return sendFailure(res, SECOND_STREAM);
    found.listen(res, caller);
  }

  /** Ends a session. Throws GatewayError. */
  delete(req: IncomingMessage, res: ServerResponse, serverId: string): void {
    const { found, caller } = this.#arrive(req, res, serverId);
    const refused = this.#refused(req, found, caller, false);
    if (!found || refused) return sendFailure(res, refused ?? sessionUnknown());
    this.#options.sessions.end(found);
    sendEmpty(res, 204);
  }

  #accepted(accept: string | undefined): Accepted {
    if (accept === this.#accept) return this.#admits;
    this.#accept = accept;
    this.#admits = { json: accepts(accept, JSON_TYPE), events: accepts(accept, EVENT_STREAM_TYPE) };
    return this.#admits;
  }

  #arrive(req: IncomingMessage, res: ServerResponse, serverId: string): Arrival {
    const id = req.headers['mcp-session-id'];
    const found = typeof id === 'string' ? this.#options.sessions.find(id, serverId) : undefined;
    return { req, res, serverId, found, caller: this.#options.authenticate(req, found?.caller) };
  }

  async #message({ req, res, found, caller }: Arrival, message: Message, accepted: Accepted): Promise<void> {
    const refused = this.#refused(req, found, caller, message.kind === 'request');
    if (!found || refused) return sendFailure(res, refused ?? sessionUnknown(), message.id);
    this.#use(found, caller);
    if (message.kind !== 'request') {
      found.session.receive(message, caller);
      return sendEmpty(res, 202);
    }
    const reply = new PostReply(found, res, {
      json: accepted.json,
      events: accepted.events,
      count: 1,
      batch: false,
      headers: NO_HEADERS,
    });
    await found.session.request(message, caller, wantsFresh(req), reply);
    this.#options.sessions.touch(found);
  }

  async #batch({ req, res, found, caller }: Arrival, batch: Message[], accepted: Accepted): Promise<void> {
    const requests = batch.filter((message) => message.kind === 'request');
    const refused = this.#refused(req, found, caller, requests.length > 0);
    if (!found || refused) return sendFailure(res, refused ?? sessionUnknown());
    this.#use(found, caller);
    const running: Promise<void>[] = [];
    if (requests.length > 0) {
      const form = { ...accepted, count: requests.length, batch: true, headers: NO_HEADERS };
      const reply = new PostReply(found, res, form);
      const fresh = wantsFresh(req);
      for (const message of requests) running.push(found.session.request(message, caller, fresh, reply));
    }
    for (const message of batch) if (message.kind !== 'request') found.session.receive(message, caller);
    if (running.length === 0) return sendEmpty(res, 202);
    await Promise.all(running);
    this.#options.sessions.touch(found);
  }

  /** Why a request may not use the session that was found for it, or undefined. */
  #refused(
    req: IncomingMessage,
    found: HttpSession | undefined,
    caller: Caller,
    begins: boolean,
  ): Failure | undefined {
    if (!req.headers['mcp-session-id']) return SESSION_MISSING;
    if (!found || found.principal !== caller.principal) return sessionUnknown();
    const revision = req.headers['mcp-protocol-version'];
    if (revision !== undefined && !isLegacyRevision(revision)) return BAD_REVISION;
    return begins && this.#options.draining() ? shuttingDown(found.session.serverId) : undefined;
  }

  #use(session: HttpSession, caller: Caller): void {
    session.caller = caller;
    this.#options.sessions.touch(session);
  }
}

/**
 * Goes on behind an event. An id that is none of this session's is older than what we know of it: the client gets the
 * general stream, in place of one that it may have lost.
 */
function takeUp(res: ServerResponse, session: HttpSession, caller: Caller, lastEventId: string): void {
  const cursor = session.locate(lastEventId);
  if (!cursor || session.isGeneral(cursor)) return session.listen(res, caller, cursor);
  const running = session.running(cursor);
  if (running) running.resume(res, cursor);
  else session.repeat(res, cursor);
}

/** An agent that says so is answered by the server itself. */
function wantsFresh(req: IncomingMessage): boolean {
  const control = req.headers['cache-control'];
  return control !== undefined && /(^|[\s,])no-cache([\s,]|$)/i.test(control);
}
