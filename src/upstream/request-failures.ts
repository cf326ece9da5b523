import { GatewayError } from '../base/errors.js';

/** Why a request of one connection is not answered. Each message names the server. */

export function cancelled(serverId: string): GatewayError {
  return new GatewayError('cancelled', 'The request was cancelled', { serverId });
}

/** `setting`: the name of what bounds it. */
export function timedOut(
  serverId: string,
  method: string,
  elapsedMs: number,
  setting?: string,
): GatewayError {
  const what = `did not answer ${method} within ${Math.round(elapsedMs)} ms${setting ? ` (${setting})` : ''}`;
  return new GatewayError('server_timeout', `Server "${serverId}" ${what}`, { serverId });
}

/** We closed the connection. */
export function closed(serverId: string): GatewayError {
  return new GatewayError('server_unavailable', `The connection to "${serverId}" was closed`, { serverId });
}

/** The connection was gone before the request was sent. */
export function gone(serverId: string): GatewayError {
  return new GatewayError('session_lost', `The connection to "${serverId}" is closed`, { serverId });
}

export function unanswered(serverId: string, method: string): GatewayError {
  const what = `ended its answer to ${method} without a response`;
  return new GatewayError('server_protocol', `Server "${serverId}" ${what}`, { serverId });
}

/** Whatever was sent before the link broke may have run. */
export function broken(serverId: string, method: string, error: GatewayError): GatewayError {
  if (method === 'initialize') return error;
  const message = `${error.message}; whether ${method} ran is not known`;
  return new GatewayError('outcome_unknown', message, { serverId, cause: error });
}
