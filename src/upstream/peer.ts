import { errors } from 'undici';
import type { Clock } from '../base/clock.js';
import { GatewayError, type GatewayErrorCode, type GatewayErrorDetails, messageOf } from '../base/errors.js';
import { CallError, type CallRequest, HttpCall, type Reply } from './http-call.js';
import { headerOf, type StandingHeaders } from './http-headers.js';
import type { OriginPools } from './origin.js';
import { redirectOf } from './redirect.js';

export interface PeerRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** On top of the standing ones. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** Running it twice does no harm: it is sent once more if an idle socket turns out to be dead. */
  readonly repeatable: boolean;
  /** Ends the wait and the body, whenever it comes. */
  readonly signal?: AbortSignal | undefined;
  /** Until the reply's headers are here. */
  readonly deadlineMs?: number;
}

const MAX_REDIRECTS = 3;

/**
 * One URL of a remote server, asked with the server's standing headers and credential. Every failure is a GatewayError
 * that names the server and the origin, never the path, the query or a header value.
 */
export class RemotePeer {
  readonly serverId: string;
  readonly clock: Clock;
  readonly standing: StandingHeaders;
  readonly #origins: OriginPools;
  /** Ends of what is under way: calls and pauses. */
  readonly #live = new Set<(reason: GatewayError) => void>();
  readonly #url: URL;
  /** Where a verb was redirected to. */
  readonly #moved = new Map<string, URL>();
  #ended: GatewayError | undefined;

  constructor(serverId: string, url: URL, standing: StandingHeaders, clock: Clock, origins: OriginPools) {
    this.serverId = serverId;
    this.clock = clock;
    this.standing = standing;
    this.#origins = origins;
    this.#url = url;
  }

  /** Where requests of a verb go: the configured URL, or where it was redirected to. */
  urlOf(method: PeerRequest['method']): URL {
    return this.#moved.get(method) ?? this.#url;
  }

  /** The same server, with the same credential, at another URL. */
  at(url: URL): RemotePeer {
    return new RemotePeer(this.serverId, url, this.standing, this.clock, this.#origins);
  }

  /**
   * The reply, whatever its status, after redirects within the origin. Rejects with `server_unavailable` when the
   * server could not be reached, `outcome_unknown` when the connection broke behind the request, `server_timeout`,
   * `server_protocol`, or `cancelled`.
   */
  async ask(request: PeerRequest): Promise<Reply> {
    for (let hops = 0; ; hops++) {
      const reply = await this.#reach(request);
      const location = headerOf(reply.headers, 'location');
      const redirect = redirectOf(reply.status, location, request.method, this.urlOf(request.method));
      if (redirect.kind === 'none') return reply;
      reply.body.cancel();
      if (redirect.kind === 'refused')
        throw this.error('server_unavailable', redirect.why, { status: reply.status });
      if (hops === MAX_REDIRECTS)
        throw this.error('server_unavailable', 'redirects in circles', { status: reply.status });
      this.#moved.set(request.method, redirect.url);
    }
  }

  /** Waits, unless ended or aborted, which rejects. */
  async pause(delayMs: number, signal?: AbortSignal): Promise<void> {
    this.#check(signal);
    let stop: () => void = () => {};
    try {
      await new Promise<void>((resolve, reject) => {
        const timer = this.clock.after(delayMs, resolve);
        const end = this.#watch(reject, signal);
        stop = () => {
          timer.cancel();
          end();
        };
      });
    } finally {
      stop();
    }
  }

  /** Fails everything that is under way, bodies being read too, and all that is asked later. */
  end(reason: GatewayError): void {
    this.#ended ??= reason;
    for (const abort of [...this.#live]) abort(reason);
  }

  /** `what` completes the sentence "Server x …". */
  error(code: GatewayErrorCode, what: string, details: GatewayErrorDetails = {}): GatewayError {
    return new GatewayError(code, `Server "${this.serverId}" ${what}`, {
      serverId: this.serverId,
      ...details,
    });
  }

  async #reach(request: PeerRequest): Promise<Reply> {
    try {
      return await this.#call(request, false);
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      if (!error.onUsedSocket || !request.repeatable) throw this.#failure(error);
    }
    try {
      return await this.#call(request, true);
    } catch (error) {
      throw error instanceof CallError ? this.#failure(error) : error;
    }
  }

  async #call(request: PeerRequest, fresh: boolean): Promise<Reply> {
    this.#check(request.signal);
    const { method, body, deadlineMs } = request;
    const headers = { ...this.standing.headers, ...request.headers };
    const what: CallRequest = { method, url: this.urlOf(method), headers, fresh, ...(body ? { body } : {}) };
    let unwatch: () => void = () => {};
    const call = new HttpCall(this.#origins, what, () => unwatch());
    unwatch = this.#watch((reason) => call.abort(reason), request.signal);
    const deadline =
      deadlineMs === undefined
        ? undefined
        : this.clock.after(deadlineMs, () => call.abort(this.#late(method, deadlineMs)));
    try {
      return await call.reply;
    } catch (error) {
      unwatch();
      throw error;
    } finally {
      deadline?.cancel();
    }
  }

  /** Calls `abort` when the peer ends or the signal fires; returns what undoes that. */
  #watch(abort: (reason: GatewayError) => void, signal: AbortSignal | undefined): () => void {
    const onAbort = () => abort(this.#cancelled());
    this.#live.add(abort);
    signal?.addEventListener('abort', onAbort, { once: true });
    return () => {
      this.#live.delete(abort);
      signal?.removeEventListener('abort', onAbort);
    };
  }

  #check(signal: AbortSignal | undefined): void {
    if (this.#ended) throw this.#ended;
    if (signal?.aborted) throw this.#cancelled();
  }

  #cancelled(): GatewayError {
    return new GatewayError('cancelled', `The request to server "${this.serverId}" was cancelled`, {
      serverId: this.serverId,
    });
  }

  #late(method: string, deadlineMs: number): GatewayError {
    return this.error('server_timeout', `did not answer a ${method} within ${deadlineMs} ms`);
  }

  #failure(error: CallError): GatewayError {
    const { cause, sent } = error;
    const { origin } = this.#url;
    const why = messageOf(cause);
    if (!sent) return this.error('server_unavailable', `cannot be reached at ${origin}: ${why}`, { cause });
    if (cause instanceof errors.HTTPParserError || cause instanceof errors.HeadersOverflowError)
      return this.error('server_protocol', `does not speak HTTP at ${origin}`, { cause });
    return this.error('outcome_unknown', `broke the connection before it answered: ${why}`, { cause });
  }
}
