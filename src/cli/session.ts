import { ServerError } from '../app/answer.js';
import { McpManager } from '../app/manager.js';
import { GatewayError, messageOf } from '../base/errors.js';
import { createLogger, logEvent } from '../telemetry/logs.js';
import type { Selection } from './args.js';
import { configurationOf, type Loaded } from './configuration.js';
import { exitOnFault, killChildrenAtExit, onStopSignal } from './lifecycle.js';
import { complain } from './terminal.js';
import { EXIT_FAILURE } from './usage.js';

/**
 * Runs `work` with a manager for the servers that a command line means, and closes it, whatever happens. The log is
 * quiet unless a level was asked for on the command line: what matters is said by the command itself.
 */
export async function withManager(
  selection: Selection,
  work: (manager: McpManager, loaded: Loaded) => Promise<number>,
): Promise<number> {
  const loaded = await configurationOf(selection);
  if (!loaded) return EXIT_FAILURE;
  for (const warning of loaded.warnings) complain(warning);
  const level = selection.flags.logLevel === undefined ? 'fatal' : loaded.config.logLevel;
  const logger = createLogger({ level });
  exitOnFault(logger);
  const manager = new McpManager(loaded.config, { emit: (event) => logEvent(logger, event) });
  killChildrenAtExit(manager);
  onStopSignal((_, code) => void manager.closeAll().finally(() => process.exit(code)));
  try {
    return await work(manager, loaded);
  } finally {
    await manager.closeAll();
  }
}

/** One line for people on why a request failed. What is a fault of our own is thrown on. */
export function reasonOf(failure: unknown): string {
  if (failure instanceof ServerError) return `the server answered error ${failure.code}: ${failure.message}`;
  if (failure instanceof GatewayError) return messageOf(failure);
  throw failure;
}
