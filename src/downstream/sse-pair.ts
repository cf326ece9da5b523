import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.js';
import type { GatewayError } from '../base/errors.js';
import { unguessableId } from '../base/random.js';
import type { EventSink } from '../pipeline/events.js';
import { accepts } from '../wire/media.js';
import { messageEvent, namedEvent } from '../wire/sse-writer.js';
import type { Backend } from './backend.js';
import type { Authenticate } from './callers.js';
import type { DueList } from './due-list.js';
import { refusal, sessionUnknown, shuttingDown } from './errors.js';
import { type Due, EventStream, MAX_QUEUED_ANSWER_BYTES } from './event-stream.js';
import { readJsonBody } from './json-body.js';
import { Pipe } from './pipe.js';
import { sendEmpty, sendFailure } from './respond.js';
import type { Sessions } from './sessions.js';

export interface SsePairOptions {
  readonly backend: Backend;
  readonly sessions: Sessions;
  readonly keepAlive: DueList<Due>;
  readonly authenticate: Authenticate;
  readonly maxRequestBytes: number;
  readonly clock: Clock;
  readonly emit: EventSink;
  /** True once no new request is taken. */
  readonly draining: () => boolean;
}

interface Guest {
  readonly serverId: string;
  readonly principal: string;
  readonly pipe: Pipe;
  readonly stream: EventStream;
}

const NO_STREAM_ACCEPTED = refusal(406, 'Accept must admit text/event-stream');
const SESSION_MISSING = refusal(400, 'The parameter sessionId is missing');

/**
 * The two endpoints of the oldest HTTP transport: a stream on which everything goes to the agent, and a path to which
 * it posts. The stream is the session: without it nothing remains.
 * https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse
 */
export class SsePair {
  readonly #options: SsePairOptions;
  readonly #guests = new Map<string, Guest>();

  constructor(options: SsePairOptions) {
    this.#options = options;
  }

  /** Opens a stream and names the path to post to, which lies below `prefix`. Throws GatewayError. */
  open(req: IncomingMessage, res: ServerResponse, serverId: string, prefix: string): void {
    const { sessions, backend, emit, keepAlive, authenticate } = this.#options;
    if (!accepts(req.headers.accept, 'text/event-stream')) return sendFailure(res, NO_STREAM_ACCEPTED);
    if (this.#options.draining()) return sendFailure(res, shuttingDown(serverId));
    const { principal } = authenticate(req, undefined);
    sessions.admit(serverId);
    const id = unguessableId();
    const endpoint = namedEvent('endpoint', `${prefix}/messages?sessionId=${id}`);
    const stream = new EventStream(res, keepAlive, () => this.#leave(id), endpoint);
    const pipe = new Pipe(
      { serverId, backend, emit },
      {
        send: (bytes) => stream.write(messageEvent(bytes)),
        answer: (bytes) => stream.write(messageEvent(bytes), MAX_QUEUED_ANSWER_BYTES),
      },
    );
    this.#guests.set(id, { serverId, principal, pipe, stream });
    sessions.guestCame(serverId);
  }

  /** Takes a message; it is answered on the stream. Rejects with GatewayError or MessageError. */
  async post(req: IncomingMessage, res: ServerResponse, serverId: string, id: string | null): Promise<void> {
    if (!id) return sendFailure(res, SESSION_MISSING);
    const guest = this.#guests.get(id);
    const caller = this.#options.authenticate(req, undefined);
    if (guest?.serverId !== serverId || guest.principal !== caller.principal)
      return sendFailure(res, sessionUnknown());
    const body = await readJsonBody(req, res, this.#options);
    if (!body) return;
    const messages = guest.pipe.read(body);
    const asks = messages.find((message) => message.kind === 'request');
    if (asks && this.#options.draining()) return sendFailure(res, shuttingDown(serverId), asks.id);
    // The answer to the POST goes first: clients of this transport wait for it before they look for the response.
    sendEmpty(res, 202);
    for (const message of messages) guest.pipe.take(message, caller);
  }

  /** Lets each agent go as soon as nothing of it is under way. */
  drain(): void {
    for (const [id, { pipe, stream }] of this.#guests)
      void pipe.idle().then(() => {
        stream.end();
        this.#leave(id);
      });
  }

  /** Lets every agent go now. */
  close(why: GatewayError): void {
    for (const [id, { stream }] of this.#guests) {
      this.#leave(id, why);
      stream.end();
    }
  }

  #leave(id: string, why?: GatewayError): void {
    const guest = this.#guests.get(id);
    if (!this.#guests.delete(id) || !guest) return;
    guest.pipe.end(why);
    this.#options.sessions.guestLeft(guest.serverId);
  }
}
