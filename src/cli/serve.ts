import { type Gateway, serveAgentOnStdio, startGateway } from '../app/gateway.js';
import { GatewayError } from '../base/errors.js';
import { isLoopback } from '../downstream/guard.js';
import { ListenError } from '../downstream/listen.js';
import { prefixOf } from '../downstream/routes.js';
import { createLogger, type Logger, logEvent } from '../telemetry/logs.js';
import type { Command } from './args.js';
import { configurationOf, type Loaded, serverIdOf } from './configuration.js';
import { exitOnFault, killChildrenAtExit, untilStopped } from './lifecycle.js';
import { complain, print } from './terminal.js';
import { EXIT_FAILURE } from './usage.js';

/** Serves agents until it is told to stop; answers with the exit code. */
export async function serve(command: Extract<Command, { name: 'serve' }>): Promise<number> {
  const loaded = await configurationOf(command.selection);
  if (!loaded) return EXIT_FAILURE;
  const logger = createLogger({ level: loaded.config.logLevel });
  exitOnFault(logger);
  report(loaded, logger);
  try {
    return command.stdio
      ? await serveStdio(loaded, logger, command.selection.server)
      : await serveHttp(loaded, logger);
  } catch (failure) {
    if (!(failure instanceof ListenError || failure instanceof GatewayError)) throw failure;
    complain(failure.message);
    return EXIT_FAILURE;
  }
}

async function serveHttp({ config }: Loaded, logger: Logger): Promise<number> {
  const gateway = await startGateway(config, { emit: (event) => logEvent(logger, event) });
  killChildrenAtExit(gateway);
  if (!isLoopback(config.host))
    logger.warn(
      { host: config.host },
      'whoever reaches this address can use every server: agents are not authenticated',
    );
  const stopped = untilStopped(gateway, { shutdownMs: config.shutdownMs, logger });
  announce(
    gateway,
    config.servers.map(({ id }) => id),
  );
  return await stopped;
}

/** stdout carries nothing but the protocol here. */
async function serveStdio(loaded: Loaded, logger: Logger, server: string | undefined): Promise<number> {
  const streams = { serverId: serverIdOf(loaded, server), stdin: process.stdin, stdout: process.stdout };
  const emit = { emit: (event: Parameters<typeof logEvent>[1]) => logEvent(logger, event) };
  const gateway = serveAgentOnStdio(loaded.config, streams, emit);
  killChildrenAtExit(gateway);
  const { shutdownMs } = loaded.config;
  return await untilStopped(gateway, { shutdownMs, logger, done: gateway.done });
}

/** The first line is for programs that wait for it. */
function announce(gateway: Gateway, serverIds: readonly string[]): void {
  print(`Sidegate listens on ${gateway.url}`);
  for (const id of serverIds) print(`${id} ${gateway.url}${prefixOf(id)}/mcp`);
}

function report({ config, warnings, off, origin, embedded }: Loaded, logger: Logger): void {
  if (embedded) logger.info('nothing is configured: the bundled demonstration server is served');
  else logger.info({ origin, off }, `configuration: ${origin}`);
  for (const warning of warnings) logger.warn(warning);
  for (const { id, problems } of config.disabled)
    logger.warn({ serverId: id }, `server ${JSON.stringify(id)} is disabled: ${problems.join('; ')}`);
}
