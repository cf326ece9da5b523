import type { GatewayError } from '../base/errors.js';
import { isRepeatable } from '../protocol/methods.js';

/**
 * Whether a request that failed may be sent once more: it certainly did not run, or may run twice. `stands`: the
 * connection that it failed on is still there, and would be used again.
 */
export function mayRepeat(failure: GatewayError, method: string, stands: boolean): boolean {
  switch (failure.code) {
    case 'session_lost':
      return true;
    case 'server_unavailable':
      // It could not be sent because the link was breaking; over a link that stands it would fail again.
      return !stands;
    case 'outcome_unknown':
      return isRepeatable(method);
    default:
      return false;
  }
}
