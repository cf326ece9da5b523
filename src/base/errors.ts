/**
 * Everything that can go wrong on the gateway's own account. A server's JSON-RPC error is not one of these:
 * it passes unchanged.
 */
export type GatewayErrorCode =
  /** No server of that id is configured. */
  | 'server_unknown'
  /** The server is configured but its configuration is unusable. */
  | 'server_disabled'
  /** It could not be reached, started, or initialized; nothing of the request ran. */
  | 'server_unavailable'
  /** The server does not speak the protocol era that the request was in; nothing of it ran. */
  | 'other_era'
  /** The server no longer knows our session; nothing of the request ran. */
  | 'session_lost'
  /** The link broke while the request was under way and nobody knows whether it ran. */
  | 'outcome_unknown'
  /** A phase passed its deadline. */
  | 'server_timeout'
  /** It answered something that is not the protocol. */
  | 'server_protocol'
  /** It refused the credential (401) or the caller's rights (403). */
  | 'unauthorized'
  /** A line or body above the configured limit. */
  | 'too_large'
  /** A limit of connections, sessions or queues is reached; later it may work. */
  | 'at_capacity'
  /** The agent cannot be asked: it is gone, or lacks the capability. */
  | 'agent_unreachable'
  /** The agent's message is not a valid request. */
  | 'invalid_request'
  /** The request's params are wrong in a way that its server would not find out. */
  | 'invalid_params'
  /** Neither the gateway nor the server has this method. */
  | 'method_unknown'
  /** 2026-07-28: headers and body of a request differ, or a header is missing. */
  | 'header_mismatch'
  /** 2026-07-28: the request needs a client capability that its agent did not declare. */
  | 'capability_missing'
  /** The request declares a revision that is not spoken. */
  | 'revision_unsupported'
  | 'cancelled'
  | 'shutting_down';

export interface GatewayErrorDetails {
  /** Configured id of the server concerned. */
  readonly serverId?: string;
  /** HTTP status that the server answered. */
  readonly status?: number;
  /** `WWW-Authenticate` header of a refused credential, to be handed on to its owner. */
  readonly challenge?: string;
  readonly retryAfterMs?: number;
  /** More members of the JSON-RPC error's `data`, as the specification names them. */
  readonly data?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/** A failure of the gateway's own. The message is shown to agents: it names the server and holds no secret. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly code: GatewayErrorCode;
  readonly details: GatewayErrorDetails;

  constructor(code: GatewayErrorCode, message: string, details: GatewayErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.details = details;
  }
}

/** One line for people from whatever was thrown. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && !error.message && error.errors.length > 0)
    return messageOf(error.errors[0]);
  return error instanceof Error ? error.message || error.name : String(error);
}
