import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import { type SseEvent, SseReader } from '../wire/sse-reader.js';
import { decoded } from './content-coding.js';
import type { Reply } from './http-call.js';
import { headerOf } from './http-headers.js';
import type { RemotePeer } from './peer.js';
import type { ChunkSource } from './reply-body.js';

/** How long the rest of a body is read so that its socket can be used again. */
const DRAIN_MS = 250;
const DRAIN_BYTES = 256 * 1024;

/** The reply's body without its content coding. Throws GatewayError `server_protocol` for an unknown one. */
export function plainBody(peer: RemotePeer, reply: Reply): ChunkSource {
  const encoding = headerOf(reply.headers, 'content-encoding');
  const body = decoded(reply.body, encoding);
  if (body) return body;
  reply.body.cancel();
  throw peer.error('server_protocol', 'compresses its answers in a way that the gateway does not know');
}

/** The whole body. Rejects with `too_large`, or with the raw error of the connection. */
export async function readAll(peer: RemotePeer, body: ChunkSource, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for (let chunk = await body.next(); chunk; chunk = await body.next()) {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      body.cancel();
      throw peer.error('too_large', `answered with more than ${maxBytes} bytes`);
    }
    chunks.push(chunk);
  }
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
}

/** The first bytes of a body, however it ends. Rejects with nothing but an abort's GatewayError. */
export async function readStart(body: ChunkSource, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for (let chunk = await body.next(); chunk; chunk = await body.next()) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes >= maxBytes) break;
    }
  } catch (error) {
    if (error instanceof GatewayError) throw error;
  }
  body.cancel();
  return Buffer.concat(chunks).subarray(0, maxBytes);
}

/** Reads the rest of a body in the background, for a moment and within bounds, then cancels it. Never rejects. */
export function drain(body: ChunkSource, clock: Clock, onChunk: (chunk: Buffer) => void = () => {}): void {
  const timer = clock.after(DRAIN_MS, () => body.cancel());
  const read = async () => {
    let bytes = 0;
    for (let chunk = await body.next(); chunk; chunk = await body.next()) {
      onChunk(chunk);
      bytes += chunk.length;
      if (bytes > DRAIN_BYTES) return;
    }
  };
  void read()
    .catch(() => {})
    .finally(() => {
      timer.cancel();
      body.cancel();
    });
}

/**
 * Gives every event to `onEvent` as it arrives, until the body ends, breaks, or `isDone` says that what follows is of
 * no interest; the rest is then drained, and its events still given. Resolves to what broke the connection, if anything
 * did. Rejects with `too_large` or the GatewayError of an abort, the body cancelled.
 */
export async function readEvents(
  peer: RemotePeer,
  body: ChunkSource,
  maxEventBytes: number,
  onEvent: (event: SseEvent) => void,
  isDone: () => boolean = () => false,
): Promise<Error | undefined> {
  const reader = new SseReader(maxEventBytes, onEvent);
  try {
    for (let chunk = await body.next(); chunk; chunk = await body.next()) {
      reader.push(chunk);
      if (!isDone()) continue;
      drain(body, peer.clock, (rest) => reader.push(rest));
      return undefined;
    }
    reader.end();
    return undefined;
  } catch (error) {
    body.cancel();
    if (!(error instanceof GatewayError)) {
      reader.end();
      return error as Error;
    }
    if (error.code !== 'too_large') throw error;
    throw peer.error('too_large', `sent an event larger than ${maxEventBytes} bytes`);
  }
}
