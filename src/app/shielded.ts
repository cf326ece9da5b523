import { emitWarning } from 'node:process';
import { messageOf } from '../base/errors.js';

/** Runs code of the library's user. A fault in it costs nobody an answer: it becomes a warning of Node's. */
export function shielded(what: string, work: () => void): void {
  try {
    work();
  } catch (failure) {
    emitWarning(`${what} failed: ${messageOf(failure)}`, 'SidegateWarning');
  }
}
