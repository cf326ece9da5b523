import { sha256Hex } from '../base/hash.js';
import { ANONYMOUS, type Caller } from '../pipeline/exchange.js';

/**
 * A bearer token for a server, or a function that gives the one of this moment; it is called once for each method of the
 * manager. One that throws, rejects or gives nothing counts as no token.
 */
export type TokenSource = string | (() => string | undefined | Promise<string | undefined>);

/** The caller that a token makes. `failed` is called when the source fails; why is not passed on, for it may hold a secret. */
export async function callerOf(source: TokenSource | undefined, failed: () => void): Promise<Caller> {
  const token = typeof source === 'function' ? await ask(source, failed) : source;
  if (typeof token !== 'string' || token === '') return ANONYMOUS;
  return { principal: ANONYMOUS.principal, token, tokenHash: sha256Hex(token) };
}

async function ask(source: Exclude<TokenSource, string>, failed: () => void): Promise<string | undefined> {
  try {
    return await source();
  } catch {
    failed();
    return undefined;
  }
}
