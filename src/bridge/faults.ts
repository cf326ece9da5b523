import { GatewayError } from '../base/errors.js';
import { JsonError } from '../wire/json.js';
import { MessageError } from '../wire/message.js';

/** A server did what its revision does not permit. `what` goes on behind its name. */
export function misbehaved(serverId: string, what: string): GatewayError {
  return new GatewayError('server_protocol', `Server "${serverId}" ${what}`, { serverId });
}

export function withdrawn(serverId: string): GatewayError {
  return new GatewayError('cancelled', 'The request was cancelled', { serverId });
}

/** Reads an agent's params. Throws GatewayError `invalid_params` where a member is given twice that must be one. */
export function readingParams<T>(serverId: string, read: () => T): T {
  try {
    return read();
  } catch (failure) {
    if (!(failure instanceof JsonError)) throw failure;
    throw new GatewayError('invalid_params', `The params are ambiguous: ${failure.message}`, { serverId });
  }
}

/** Waits for what reads a server's answers. Rejects with GatewayError `server_protocol` where they cannot be understood. */
export async function readingAnswers<T>(serverId: string, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (failure) {
    if (!(failure instanceof JsonError || failure instanceof MessageError)) throw failure;
    throw misbehaved(serverId, `answered what cannot be understood: ${failure.message}`);
  }
}
