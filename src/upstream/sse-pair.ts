import { GatewayError } from '../base/errors.js';
import type { EventSink } from '../pipeline/events.js';
import { isRepeatable } from '../protocol/methods.js';
import { EVENT_STREAM_TYPE, essence, JSON_TYPE } from '../wire/media.js';
import { idKey, type Message, readMessage } from '../wire/message.js';
import type { SseEvent } from '../wire/sse-reader.js';
import { drain, plainBody, readAll, readEvents } from './body.js';
import type { Reply } from './http-call.js';
import { headerOf } from './http-headers.js';
import type { Link, LinkEvents } from './link.js';
import type { RemotePeer } from './peer.js';
import { asAnswerTo, readRefusal, refusedMessage } from './refused.js';

export interface SsePairDeps {
  /** Of the stream's URL. */
  readonly peer: RemotePeer;
  readonly events: LinkEvents;
  readonly emit: EventSink;
  readonly maxAnswerBytes: number;
  /** Until the server has named its endpoint, and until it has accepted a message. */
  readonly connectTimeoutMs: number;
}

/**
 * Opens the stream and waits for the `endpoint` event. Rejects with a GatewayError when the server refuses, answers
 * something else (`server_protocol`), or names no usable endpoint in time (`server_timeout`).
 * https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse
 */
export async function openSsePair(deps: SsePairDeps, signal?: AbortSignal): Promise<Link> {
  const { peer, connectTimeoutMs } = deps;
  const link = new SsePairLink(deps);
  const timer = peer.clock.after(connectTimeoutMs, () => {
    link.fail(peer.error('server_timeout', `named no endpoint within ${connectTimeoutMs} ms`));
  });
  const onAbort = () => link.fail(peer.error('cancelled', 'is no longer wanted'));
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    if (signal?.aborted) onAbort();
    await link.open();
    return link;
  } catch (error) {
    await link.close();
    throw error;
  } finally {
    timer.cancel();
    signal?.removeEventListener('abort', onAbort);
  }
}

/** One session over the older pair of a GET stream, on which all answers come, and POSTs to the endpoint it names. */
class SsePairLink implements Link {
  readonly kind = 'sse';
  readonly #deps: SsePairDeps;
  #post: RemotePeer | undefined;
  #endpoint: string | undefined;
  #opened: { resolve(): void; reject(error: GatewayError): void } | undefined;
  #over = false;

  constructor(deps: SsePairDeps) {
    this.#deps = deps;
  }

  async open(): Promise<void> {
    const { peer } = this.#deps;
    const reply = await peer.ask({ method: 'GET', headers: { accept: EVENT_STREAM_TYPE }, repeatable: true });
    if (reply.status !== 200) throw await this.#refusal(reply);
    if (essence(headerOf(reply.headers, 'content-type')) !== EVENT_STREAM_TYPE) {
      reply.body.cancel();
      throw peer.error('server_protocol', 'did not answer with an event stream', { status: reply.status });
    }
    await new Promise<void>((resolve, reject) => {
      this.#opened = { resolve, reject };
      void this.#listen(reply);
    });
  }

  /** While it is being opened: gives up. Later: the link is gone. */
  fail(error: GatewayError): void {
    if (this.#over) return;
    this.#over = true;
    this.#deps.peer.end(error);
    this.#post?.end(error);
    if (this.#opened) this.#opened.reject(error);
    else if (this.#post) this.#deps.events.closed(error);
  }

  async send(message: Message, signal?: AbortSignal): Promise<void> {
    const { peer, connectTimeoutMs } = this.#deps;
    if (this.#over || !this.#post) throw peer.error('server_unavailable', 'is no longer connected');
    const reply = await this.#post.ask({
      method: 'POST',
      headers: { 'content-type': JSON_TYPE, accept: `${JSON_TYPE}, ${EVENT_STREAM_TYPE}` },
      body: message.bytes,
      repeatable: message.kind === 'request' && isRepeatable(message.method),
      signal,
      deadlineMs: connectTimeoutMs,
    });
    if (reply.status < 200 || reply.status > 299) return this.#refused(message, reply);
    if (message.kind === 'request' && essence(headerOf(reply.headers, 'content-type')) === JSON_TYPE)
      return this.#takeBody(message, reply);
    drain(reply.body, peer.clock);
  }

  /** The stream stands already, and this transport is older than the revision header. */
  established(): void {}

  /** The server takes the end of the stream for the end of the session. */
  async close(): Promise<void> {
    this.#over = true;
    const closed = this.#deps.peer.error('outcome_unknown', 'was disconnected before it answered');
    this.#post?.end(closed);
    this.#deps.peer.end(closed);
  }

  async #listen(reply: Reply): Promise<void> {
    const { peer, maxAnswerBytes } = this.#deps;
    try {
      const broken = await readEvents(peer, plainBody(peer, reply), maxAnswerBytes, (event) =>
        this.#take(event),
      );
      this.fail(
        peer.error('outcome_unknown', `ended its event stream${broken ? `: ${broken.message}` : ''}`),
      );
    } catch (error) {
      this.fail(error as GatewayError);
    }
  }

  #take(event: SseEvent): void {
    if (this.#over || event.data.length === 0) return;
    if (event.event === 'endpoint') return this.#takeEndpoint(event.data.toString().trim());
    if (event.event !== 'message') return;
    let message: Message;
    try {
      message = readMessage(event.data);
    } catch (error) {
      return this.#dropped(`an event holds no message: ${(error as Error).message}`);
    }
    this.#deps.events.message(message, undefined);
  }

  #takeEndpoint(text: string): void {
    const { peer } = this.#deps;
    if (this.#endpoint === text) return;
    if (this.#endpoint !== undefined) return this.fail(peer.error('session_lost', 'began another session'));
    const base = peer.urlOf('GET');
    const url = URL.canParse(text, base.href) ? new URL(text, base.href) : undefined;
    if (!url) return this.fail(peer.error('server_protocol', 'named an endpoint that is no URL'));
    if (url.origin !== base.origin)
      return this.fail(
        peer.error('server_protocol', 'named an endpoint of another origin, which is not followed'),
      );
    this.#endpoint = text;
    this.#post = peer.at(url);
    const opened = this.#opened;
    this.#opened = undefined;
    opened?.resolve();
  }

  async #refusal(reply: Reply): Promise<GatewayError> {
    const { peer } = this.#deps;
    return refusedMessage(peer, reply.status, await readRefusal(peer, reply, false));
  }

  async #refused(message: Message, reply: Reply): Promise<void> {
    const { peer, events } = this.#deps;
    const refusal = await readRefusal(peer, reply, true);
    if (message.kind !== 'request' || refusal instanceof GatewayError)
      throw refusedMessage(peer, reply.status, refusal);
    if (!this.#over) events.message(asAnswerTo(message, refusal), undefined);
  }

  /** Some servers answer on the POST itself. Other bodies are pleasantries. */
  async #takeBody(request: Message, reply: Reply): Promise<void> {
    const { peer, maxAnswerBytes, events } = this.#deps;
    let answer: Message;
    try {
      answer = readMessage(await readAll(peer, plainBody(peer, reply), maxAnswerBytes));
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      return;
    }
    const answers = answer.kind === 'result' || answer.kind === 'error';
    if (answers && idKey(answer.id || 'null') === idKey(request.id) && !this.#over)
      events.message(answer, undefined);
  }

  #dropped(why: string): void {
    this.#deps.emit({ type: 'message_dropped', serverId: this.#deps.peer.serverId, method: '', why });
  }
}
