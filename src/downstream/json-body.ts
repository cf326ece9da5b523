import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.js';
import { essence } from '../wire/media.js';
import { readBody } from './body.js';
import { refusal } from './errors.js';
import { refuseBody, sendFailure } from './respond.js';

export interface BodyOptions {
  readonly maxRequestBytes: number;
  readonly clock: Clock;
}

const NOT_JSON = refusal(415, 'Content-Type must be application/json');
const ENCODED = refusal(415, 'Content-Encoding is not supported');

/** The JSON text of a POST. Undefined where there is none to be had: then the request is answered, or its agent gone. */
export async function readJsonBody(
  req: IncomingMessage,
  res: ServerResponse,
  options: BodyOptions,
): Promise<Buffer | undefined> {
  const refused = typeRefusal(req);
  if (refused) {
    sendFailure(res, refused);
    return undefined;
  }
  const body = await readBody(req, options.maxRequestBytes);
  if (body === 'too_large') {
    const limit = refusal(413, `The message is above the limit of ${options.maxRequestBytes} bytes`);
    refuseBody(req, res, limit, options.clock);
  }
  return typeof body === 'string' ? undefined : body;
}

function typeRefusal(req: IncomingMessage) {
  if (essence(req.headers['content-type']) !== 'application/json') return NOT_JSON;
  const encoding = req.headers['content-encoding'];
  return encoding !== undefined && encoding.toLowerCase() !== 'identity' ? ENCODED : undefined;
}
