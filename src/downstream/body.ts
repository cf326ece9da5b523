import type { IncomingMessage } from 'node:http';

/** `too_large`: above the limit, declared or counted. `aborted`: the agent went away in the middle. */
export type Body = Buffer | 'too_large' | 'aborted';

/**
 * Reads a request's body, at most `maxBytes` of it. After `too_large` the request still flows and nobody reads it:
 * the caller answers and decides how long to let it.
 */
export function readBody(req: IncomingMessage, maxBytes: number): Promise<Body> {
  const declared = Number(req.headers['content-length'] ?? 0);
  if (declared > maxBytes) return Promise.resolve('too_large');
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    req.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes) chunks.push(chunk);
      else {
        chunks.length = 0;
        req.removeAllListeners('data');
        req.pause();
        resolve('too_large');
      }
    });
    req.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    // A request that nobody watches for errors raises none.
    req.on('close', () => resolve('aborted'));
  });
}
