/**
 * Runs work that its caller may give up. Rejects with `cancelled()` as soon as `given` is aborted, before the work begins
 * or within it; with whatever is passed to `fail`; else settles as the work does. In the first two cases the signal that
 * the work was given is aborted, and what still becomes of it is dropped.
 */
export async function cancellable<T>(
  given: AbortSignal | undefined,
  cancelled: (reason: unknown) => Error,
  work: (signal: AbortSignal, fail: (failure: unknown) => void) => Promise<T>,
): Promise<T> {
  if (given?.aborted) throw cancelled(given.reason);
  const own = new AbortController();
  let onAbort = () => {};
  try {
    return await new Promise<T>((resolve, reject) => {
      const fail = (failure: unknown, reason?: unknown) => {
        reject(failure);
        own.abort(reason);
      };
      onAbort = () => fail(cancelled(given?.reason), given?.reason);
      given?.addEventListener('abort', onAbort, { once: true });
      work(own.signal, fail).then(resolve, reject);
    });
  } finally {
    given?.removeEventListener('abort', onAbort);
  }
}
