import { systemClock } from '../base/clock.js';
import { messageOf } from '../base/errors.js';
import type { Logger } from '../telemetry/logs.js';
import { EXIT_FAILURE, EXIT_OK } from './usage.js';

/** Something that runs until it is told to stop. */
export interface Stoppable {
  /** Ends it gently. */
  drain(): Promise<void>;
  /** Ends its children at once; synchronous. */
  killChildren(): void;
}

const SIGNALS = [
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const;

/** The first SIGTERM or SIGINT calls `gently`; the second ends the process at once, as its default would. */
export function onStopSignal(gently: (signal: NodeJS.Signals, code: number) => void): void {
  let stopping = false;
  for (const [signal, code] of SIGNALS)
    process.on(signal, () => {
      if (stopping) process.exit(code);
      stopping = true;
      gently(signal, code);
    });
}

/**
 * Runs until SIGTERM or SIGINT, or until `done` settles; answers with the exit code. The first signal ends `target`
 * gently, within `shutdownMs`.
 */
export function untilStopped(
  target: Stoppable,
  options: { readonly shutdownMs: number; readonly logger: Logger; readonly done?: Promise<void> },
): Promise<number> {
  const { shutdownMs, logger, done } = options;
  return new Promise((resolve) => {
    onStopSignal((signal) => {
      logger.info({ signal }, 'stopping');
      exitAfter(shutdownMs, EXIT_OK);
      target.drain().then(
        () => resolve(EXIT_OK),
        (failure: unknown) => {
          logger.error(`the end was not clean: ${messageOf(failure)}`);
          resolve(EXIT_FAILURE);
        },
      );
    });
    done?.then(
      () => resolve(EXIT_OK),
      (failure: unknown) => {
        logger.error(messageOf(failure));
        resolve(EXIT_FAILURE);
      },
    );
  });
}

/** No child outlives this process, whichever way it ends. */
export function killChildrenAtExit(target: Pick<Stoppable, 'killChildren'>): void {
  process.once('exit', () => target.killChildren());
}

/** A fault of our own is logged once and ends the process: its state is unknown, and nobody is served by a zombie. */
export function exitOnFault(logger: Logger): void {
  let failed = false;
  const fail = (error: unknown) => {
    if (!failed) {
      failed = true;
      logger.fatal({ err: error }, 'internal error');
    }
    process.exit(EXIT_FAILURE);
  };
  process.on('uncaughtException', fail);
  process.on('unhandledRejection', fail);
}

/** Ends the process by its own when nothing is left to do, and by force if something is still there after that time. */
export function exitAfter(ms: number, code: number): void {
  process.exitCode = code;
  systemClock.after(ms, () => process.exit(code));
}
