import type { McpManager } from '../app/manager.js';
import { systemClock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { Command } from './args.js';
import type { Loaded } from './configuration.js';
import { reasonOf, withManager } from './session.js';
import { columns, print, printable } from './terminal.js';
import { EXIT_FAILURE, EXIT_OK } from './usage.js';

/** As long as one server may take; its own deadlines are made for work, not for a look. */
const CHECK_MS = 60_000;

interface Finding {
  readonly verdict: 'ok' | 'failed' | 'disabled' | 'off';
  readonly id: string;
  readonly says: readonly string[];
}

/** Tries every server of a configuration; one line each, in its order. Anything that cannot be used ends with 1. */
export async function check(command: Extract<Command, { name: 'check' }>): Promise<number> {
  return withManager(command.selection, async (manager, loaded) => {
    const tried = await Promise.all(loaded.config.servers.map(({ id }) => tryServer(manager, id)));
    const findings = [...tried, ...unusable(loaded)];
    const rows = findings.map(({ verdict, id, says }) => [verdict, printable(id), ...says.map(printable)]);
    for (const line of columns(rows)) print(line);
    return findings.every(({ verdict }) => verdict === 'ok' || verdict === 'off') ? EXIT_OK : EXIT_FAILURE;
  });
}

function unusable({ config, off }: Loaded): Finding[] {
  const disabled = config.disabled.flatMap(({ id, problems }) =>
    problems.map((problem): Finding => ({ verdict: 'disabled', id, says: [problem] })),
  );
  return [...disabled, ...off.map((id): Finding => ({ verdict: 'off', id, says: [] }))];
}

async function tryServer(manager: McpManager, id: string): Promise<Finding> {
  const startedAt = systemClock.now();
  const late = new AbortController();
  const timer = systemClock.after(CHECK_MS, () => late.abort());
  const { signal } = late;
  try {
    const info = await manager.serverInfo(id, { signal });
    const tools = hasTools(info) ? await manager.listTools(id, { signal }) : [];
    const tookMs = systemClock.now() - startedAt;
    const count = `${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}`;
    return { verdict: 'ok', id, says: [count, revisionOf(info), `${tookMs} ms`] };
  } catch (failure) {
    const tooLate = signal.aborted && failure instanceof GatewayError;
    const reason = tooLate ? `no answer within ${CHECK_MS / 1000} s` : reasonOf(failure);
    return { verdict: 'failed', id, says: [reason] };
  } finally {
    timer.cancel();
  }
}

function revisionOf(info: unknown): string {
  const { protocolVersion } = info as { protocolVersion?: unknown };
  return typeof protocolVersion === 'string' ? protocolVersion : 'no revision';
}

/** A server without the capability has no list to ask for. */
function hasTools(info: unknown): boolean {
  const { capabilities } = info as { capabilities?: { tools?: unknown } };
  return capabilities?.tools !== undefined;
}
