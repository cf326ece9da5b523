import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.js';
import { errorBytes, type Failure } from './errors.js';

/** What an agent may still send of a body that was refused, before its socket is closed under it. */
const DISCARD_MAX_BYTES = 8 * 1024 * 1024;
const DISCARD_MS = 2_000;

const NO_HEADERS: Readonly<Record<string, string>> = {};

/** A complete JSON answer. */
export function sendJson(
  res: ServerResponse,
  status: number,
  bytes: Buffer,
  headers: Readonly<Record<string, string>> = NO_HEADERS,
): void {
  res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': bytes.length, ...headers });
  res.end(bytes);
}

/** A failure with its own status. `id` is the request's JSON text; empty where it is not known. */
export function sendFailure(res: ServerResponse, failure: Failure, id = ''): void {
  sendJson(res, failure.status, errorBytes(failure, id), failure.headers);
}

/** A status without a body. */
export function sendEmpty(
  res: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>> = NO_HEADERS,
): void {
  res.writeHead(status, headers);
  res.end();
}

/**
 * Refuses a request whose body is still coming. The answer is complete at once, but the socket is closed only when the
 * agent has stopped sending, or has sent too much: closed earlier, it would be reset, and the answer lost with it.
 */
export function refuseBody(req: IncomingMessage, res: ServerResponse, failure: Failure, clock: Clock): void {
  const bytes = errorBytes(failure, '');
  const headers = { 'Content-Type': 'application/json', 'Content-Length': bytes.length, Connection: 'close' };
  res.writeHead(failure.status, headers);
  res.write(bytes);
  let discarded = 0;
  const close = () => {
    timer.cancel();
    res.end();
  };
  const timer = clock.after(DISCARD_MS, close);
  req.on('data', (chunk: Buffer) => {
    discarded += chunk.length;
    if (discarded > DISCARD_MAX_BYTES) close();
  });
  req.once('end', close);
  req.once('close', close);
  req.resume();
}
