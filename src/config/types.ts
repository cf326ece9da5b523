/** A configuration as it is used: checked, expanded, with every default in place. Immutable. */

export interface StdioTarget {
  readonly kind: 'stdio';
  readonly command: string;
  readonly args: readonly string[];
  /** Declared variables; a child gets these and a short allow-list, nothing else of our environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
}

export interface RemoteTarget {
  readonly kind: 'remote';
  readonly url: string;
  /** `auto`: Streamable HTTP, and HTTP+SSE where the server turns out to be older. */
  readonly transport: 'auto' | 'http' | 'sse';
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the agent's own bearer token is sent to this server. */
  readonly forwardAuthorization: boolean;
}

/** How far agents share one upstream connection. */
export type Isolation = 'auto' | 'token' | 'principal' | 'session';

export type EraChoice = 'auto' | 'legacy' | 'modern';

export interface ServerConfig {
  readonly id: string;
  readonly target: StdioTarget | RemoteTarget;
  readonly isolate: Isolation;
  /** Which protocol era the server is spoken to in; `auto`: each agent's own where the server speaks it. */
  readonly era: EraChoice;
  /** TTL of lists whose server sends none; undefined: the environment's or the general one. */
  readonly toolListTtlMs: number | undefined;
  /** Whether a list claimed `public` is shared across tokens; undefined: only one fetched without a credential. */
  readonly sharePublic: boolean | undefined;
  /** Until the link stands and `initialize` is answered. */
  readonly connectTimeoutMs: number;
  /** Until a request is answered; progress starts it anew. */
  readonly requestTimeoutMs: number;
  /** Until a request is answered, progress or not. */
  readonly maxRequestTimeoutMs: number;
  readonly maxConnections: number;
}

/** A server whose entry is unusable: it answers every request with this. */
export interface DisabledServer {
  readonly id: string;
  /** One line a problem, each with its path. */
  readonly problems: readonly string[];
}

export interface GatewayConfig {
  readonly host: string;
  readonly port: number;
  readonly servers: readonly ServerConfig[];
  readonly disabled: readonly DisabledServer[];
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
  readonly logLevel: 'silent' | 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace';
  readonly toolListTtlMs: number;
  readonly maxTtlMs: number;
  /** Who is given `ttlMs` and `cacheScope`: agents of the revisions that define them, or all. */
  readonly hints: 'modern' | 'always';
  readonly cacheMaxBytes: number;
  readonly cacheMaxEntries: number;
  /** Upstream connections, all servers together. */
  readonly maxConnections: number;
  /** An upstream connection that nobody uses is ended after this long. */
  readonly connectionIdleMs: number;
  readonly maxSessions: number;
  /** A session without request or open stream is ended after this long. */
  readonly sessionIdleMs: number;
  /** Between two comments on an open event stream. */
  readonly keepAliveMs: number;
  /** How long a dropped stream can be resumed, and its request keeps running. */
  readonly resumeMs: number;
  /** Kept events of one session, for resumption. */
  readonly replayMaxBytes: number;
  /** How long a call waits for its agent to bring what the server asked. */
  readonly parkMs: number;
  readonly maxParkedCalls: number;
  readonly maxRequestBytes: number;
  /** One message from a server: a line of a child, a body, an event. */
  readonly maxAnswerBytes: number;
  /** From SIGTERM to exit. */
  readonly shutdownMs: number;
}
