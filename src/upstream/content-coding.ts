import { pipeline, type Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { ChunkSource } from './reply-body.js';

/** A decoder that accepts a body cut short, since event streams are. */
function decoder(coding: string): Transform | undefined {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip({ flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH });
    case 'deflate':
      return createInflate({ flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH });
    case 'br':
      return createBrotliDecompress({
        flush: constants.BROTLI_OPERATION_FLUSH,
        finishFlush: constants.BROTLI_OPERATION_FLUSH,
      });
    default:
      return undefined;
  }
}

/**
 * The body behind its Content-Encoding, chunk by chunk as it arrives. The gateway asks for `identity`, but there are
 * servers that compress anyway. Undefined for a coding that is not understood.
 */
export function decoded(body: ChunkSource, contentEncoding: string | undefined): ChunkSource | undefined {
  const codings = (contentEncoding ?? '')
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity');
  if (codings.length > 2) return undefined;
  let source: ChunkSource | undefined = body;
  for (const coding of codings.reverse()) source = source && through(source, decoder(coding));
  return source;
}

function through(body: ChunkSource, transform: Transform | undefined): ChunkSource | undefined {
  if (!transform) return undefined;
  // The outcome shows at the reading end; without a callback a broken body would be an uncaught error.
  pipeline(chunksOf(body), transform, () => {});
  const chunks: AsyncIterator<Buffer> = transform[Symbol.asyncIterator]();
  let cancelled = false;
  return {
    next: async () => {
      if (cancelled) return undefined;
      try {
        const { done, value } = await chunks.next();
        return done ? undefined : value;
      } catch (error) {
        if (cancelled) return undefined;
        throw error;
      }
    },
    cancel: () => {
      cancelled = true;
      transform.destroy();
      body.cancel();
    },
  };
}

async function* chunksOf(body: ChunkSource): AsyncGenerator<Buffer> {
  for (;;) {
    const chunk = await body.next();
    if (!chunk) return;
    yield chunk;
  }
}
