import { randomBytes } from 'node:crypto';

/** The one door through which chance enters: numbers in [0, 1). */
export type Random = () => number;

export const systemRandom: Random = Math.random;

/** 160 bits from the system's generator, in the visible ASCII that a header may carry. */
export function unguessableId(): string {
  return randomBytes(20).toString('base64url');
}

/** Bytes that nobody can guess: for keys and nonces. */
export function secretBytes(size: number): Buffer {
  return randomBytes(size);
}
