import { createServer, type Server } from 'node:http';
import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { EventSink } from '../pipeline/events.js';
import type { Backend } from './backend.js';
import { type Authenticate, bearerCaller } from './callers.js';
import { type AdminPage, Dispatcher } from './dispatch.js';
import { DueList } from './due-list.js';
import type { Due } from './event-stream.js';
import type { GuardOptions } from './guard.js';
import { hostInUrl, listen } from './listen.js';
import { Modern } from './modern.js';
import type { PostReply } from './post-reply.js';
import type { ReplayLog } from './replay.js';
import { type SessionLimits, Sessions } from './sessions.js';
import { SsePair } from './sse-pair.js';
import { Streamable } from './streamable.js';

export interface HttpOptions extends GuardOptions, SessionLimits {
  /** 0 takes a free one. */
  readonly port: number;
  /** Between two signs of life on an open stream, and until a request without answer becomes one. */
  readonly keepAliveMs: number;
  /** How long a dropped stream can be resumed, and its request keeps running. */
  readonly resumeMs: number;
  /** Kept events of one session. */
  readonly replayMaxBytes: number;
  readonly maxRequestBytes: number;
  readonly clock: Clock;
  readonly emit: EventSink;
  /** Pages beside the protocol; undefined where there is none of that path. */
  readonly admin?: (path: string) => AdminPage | undefined;
  readonly authenticate?: Authenticate;
}

export interface HttpService {
  readonly url: string;
  readonly port: number;
  /** Agents connected at present. */
  readonly sessions: number;
  /** Takes no new work, lets what is under way finish until this instant, then ends it with an error. */
  drain(deadlineAt: number): Promise<void>;
  /** Ends everything now. */
  close(): Promise<void>;
}

// Clients keep idle sockets for a minute; a server that closes first races with their next request. Node wants the
// bounds in this order. The last one covers the reading of a request only, never its answer.
const KEEP_SOCKET_MS = 70_000;
const READ_HEADERS_MS = 75_000;
const READ_REQUEST_MS = 120_000;
/** A call that takes longer becomes a stream that its agent can resume; most are answered sooner, in plain JSON. */
const RESUMABLE_AFTER_MS = 50;
/** For the last bytes to leave, once everything is answered or refused. */
const FLUSH_MS = 250;

/** Listens for agents. Rejects with ListenError. */
export async function startHttp(options: HttpOptions, backend: Backend): Promise<HttpService> {
  const agents = new AgentListener(options, backend);
  const port = await agents.listen();
  return {
    url: `http://${hostInUrl(options.host)}:${port}`,
    port,
    get sessions() {
      return agents.sessions.size;
    },
    drain: (deadlineAt) => agents.drain(deadlineAt),
    close: () => agents.drain(options.clock.now()),
  };
}

class AgentListener {
  readonly sessions: Sessions;
  readonly #options: HttpOptions;
  readonly #server: Server;
  readonly #keepAlive: DueList<Due>;
  readonly #slow: DueList<Due>;
  readonly #lingering: DueList<PostReply>;
  readonly #logs: DueList<ReplayLog>;
  readonly #pair: SsePair;
  readonly #modern: Modern;
  #drained: Promise<void> | undefined;

  constructor(options: HttpOptions, backend: Backend) {
    const { clock, emit, keepAliveMs, resumeMs, replayMaxBytes } = options;
    this.#options = options;
    this.sessions = new Sessions(options, clock, emit);
    this.#keepAlive = new DueList(clock, keepAliveMs, (waiting) => waiting.due());
    this.#slow = new DueList(clock, RESUMABLE_AFTER_MS, (waiting) => waiting.due());
    this.#lingering = new DueList(clock, resumeMs, (reply) => reply.expire());
    this.#logs = new DueList(clock, resumeMs, (log) => log.clear());
    const common = {
      backend,
      clock,
      emit,
      sessions: this.sessions,
      keepAlive: this.#keepAlive,
      maxRequestBytes: options.maxRequestBytes,
      authenticate: options.authenticate ?? bearerCaller,
      draining: () => this.#drained !== undefined,
    };
    const context = {
      clock,
      replayMaxBytes,
      resumeMs,
      slow: this.#slow,
      keepAlive: this.#keepAlive,
      lingering: this.#lingering,
      logs: this.#logs,
      touch: this.sessions.touch.bind(this.sessions),
    };
    this.#pair = new SsePair(common);
    this.#modern = new Modern(common);
    const streamable = new Streamable({ ...common, context, modern: this.#modern });
    const dispatcher = new Dispatcher(options, backend, streamable, this.#pair);
    this.#server = createServer(
      { keepAliveTimeout: KEEP_SOCKET_MS, headersTimeout: READ_HEADERS_MS, requestTimeout: READ_REQUEST_MS },
      (req, res) => {
        res.on('close', this.#responded);
        void dispatcher.serve(req, res);
      },
    );
  }

  listen(): Promise<number> {
    return listen(this.#server, this.#options.host, this.#options.port);
  }

  drain(deadlineAt: number): Promise<void> {
    this.#drained ??= this.#drain(deadlineAt);
    return this.#drained;
  }

  async #drain(deadlineAt: number): Promise<void> {
    const { clock } = this.#options;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const session of this.sessions.all()) session.endGeneral();
    this.#pair.drain();
    this.#modern.drain();
    await this.#within(closed, deadlineAt - clock.now());
    const why = new GatewayError('shutting_down', 'The gateway is shutting down');
    this.sessions.close(why);
    this.#pair.close(why);
    this.#modern.close(why);
    await this.#within(closed, FLUSH_MS);
    this.#server.closeAllConnections();
    for (const list of [this.#slow, this.#keepAlive, this.#lingering, this.#logs]) list.close();
    await closed;
  }

  /** A socket that has answered while we go down has no further use. */
  readonly #responded = (): void => {
    if (this.#drained) this.#server.closeIdleConnections();
  };

  /** Settles with `done`, or after this long. */
  #within(done: Promise<void>, ms: number): Promise<void> {
    if (ms <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#options.clock.after(ms, resolve);
      void done.then(() => {
        timer.cancel();
        resolve();
      });
    });
  }
}
