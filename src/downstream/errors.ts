import { GatewayError, type GatewayErrorCode } from '../base/errors.js';
import {
  HEADER_MISMATCH,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  MISSING_CLIENT_CAPABILITY,
  PARSE_ERROR,
  UNSUPPORTED_PROTOCOL_VERSION,
} from '../protocol/codes.js';
import { error as errorMessage } from '../protocol/compose.js';
import { MessageError } from '../wire/message.js';

/** A failure as an agent is shown it: a JSON-RPC error, and the HTTP status where no stream has begun yet. */
export interface Failure {
  readonly code: number;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>> | undefined;
  readonly status: number;
  /** HTTP headers that go with the status. */
  readonly headers: Readonly<Record<string, string>>;
}

interface Row {
  readonly code: number;
  readonly status: number;
}

/**
 * What each failure of the gateway is to an agent. 200 is in-band: clients take other statuses as a broken transport, so
 * they are kept for what concerns the transport, and for what 2026-07-28 gives a status of its own. An agent with a
 * session gets those of the newer revision in-band too.
 */
const TABLE: Readonly<Record<GatewayErrorCode, Row>> = {
  server_unknown: { code: INVALID_REQUEST, status: 404 },
  server_disabled: { code: INTERNAL_ERROR, status: 200 },
  server_unavailable: { code: INTERNAL_ERROR, status: 200 },
  other_era: { code: INTERNAL_ERROR, status: 200 },
  session_lost: { code: INTERNAL_ERROR, status: 200 },
  outcome_unknown: { code: INTERNAL_ERROR, status: 200 },
  server_timeout: { code: INTERNAL_ERROR, status: 200 },
  server_protocol: { code: INTERNAL_ERROR, status: 200 },
  unauthorized: { code: INTERNAL_ERROR, status: 200 },
  too_large: { code: INTERNAL_ERROR, status: 200 },
  at_capacity: { code: INTERNAL_ERROR, status: 503 },
  agent_unreachable: { code: INTERNAL_ERROR, status: 200 },
  invalid_request: { code: INVALID_REQUEST, status: 200 },
  invalid_params: { code: INVALID_PARAMS, status: 200 },
  method_unknown: { code: METHOD_NOT_FOUND, status: 404 },
  header_mismatch: { code: HEADER_MISMATCH, status: 400 },
  capability_missing: { code: MISSING_CLIENT_CAPABILITY, status: 400 },
  revision_unsupported: { code: UNSUPPORTED_PROTOCOL_VERSION, status: 400 },
  cancelled: { code: INTERNAL_ERROR, status: 200 },
  shutting_down: { code: INTERNAL_ERROR, status: 503 },
};

/** What official servers send for a session they do not know; clients look at the status. */
const SESSION_UNKNOWN = -32001;
const DEFAULT_RETRY_MS = 1_000;

/** Statuses that a refusing server's own status may replace. */
const PASSED_STATUS: Partial<Record<GatewayErrorCode, readonly number[]>> = {
  unauthorized: [401, 403],
  at_capacity: [429],
  invalid_params: [400],
};

/** How whatever was thrown is shown to an agent. What is no GatewayError may hold anything, so it is not shown. */
export function failureOf(thrown: unknown, serverId: string): Failure {
  if (thrown instanceof MessageError) return malformed(thrown);
  if (!(thrown instanceof GatewayError))
    return {
      code: INTERNAL_ERROR,
      message: 'Internal error',
      data: { server: serverId },
      status: 200,
      headers: {},
    };
  const row = TABLE[thrown.code];
  const { status, retryAfterMs, data } = thrown.details;
  const passed = status !== undefined && PASSED_STATUS[thrown.code]?.includes(status);
  return {
    code: row.code,
    message: thrown.message,
    data: {
      code: thrown.code,
      server: thrown.details.serverId ?? serverId,
      ...(status === undefined ? {} : { status }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...data,
    },
    status: passed ? status : row.status,
    headers: headersOf(thrown, passed ? status : row.status),
  };
}

function headersOf(error: GatewayError, status: number): Record<string, string> {
  const { challenge, retryAfterMs } = error.details;
  if (status === 401 || status === 403)
    return challenge !== undefined && isHeaderValue(challenge) ? { 'WWW-Authenticate': challenge } : {};
  if (status === 429 || status === 503)
    return { 'Retry-After': String(Math.max(1, Math.ceil((retryAfterMs ?? DEFAULT_RETRY_MS) / 1000))) };
  return {};
}

/** A challenge comes from a server: what could break the header block is left out. */
function isHeaderValue(text: string): boolean {
  return /^[\t\x20-\x7e]*$/.test(text);
}

function malformed(thrown: MessageError): Failure {
  return refusal(400, thrown.message, thrown.parse ? PARSE_ERROR : INVALID_REQUEST);
}

/** A refusal that concerns the transport and names no server. */
export function refusal(status: number, message: string, code: number = INVALID_REQUEST): Failure {
  return { code, message, data: undefined, status, headers: {} };
}

export function sessionUnknown(): Failure {
  return refusal(404, 'Session not found', SESSION_UNKNOWN);
}

export function shuttingDown(serverId: string): Failure {
  return failureOf(new GatewayError('shutting_down', 'The gateway is shutting down', { serverId }), serverId);
}

/** The JSON-RPC error of a failure. `id` is JSON text; empty where the request's own is not known. */
export function errorBytes(failure: Failure, id: string): Buffer {
  return errorMessage(id, failure.code, failure.message, failure.data).bytes;
}
