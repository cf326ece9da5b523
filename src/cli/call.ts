import { text } from 'node:stream/consumers';
import type { Command } from './args.js';
import { serverIdOf } from './configuration.js';
import { reasonOf, withManager } from './session.js';
import { complain, print, printableJson } from './terminal.js';
import { EXIT_FAILURE, EXIT_OK, UsageError } from './usage.js';

/** Calls one tool and prints its result as JSON; a result that is an error ends with 1. */
export async function call(command: Extract<Command, { name: 'call' }>): Promise<number> {
  const { selection, tool, input } = command;
  const args = argumentsOf(input === '-' ? await text(process.stdin) : (input ?? '{}'));
  return withManager(selection, async (manager, loaded) => {
    const server = serverIdOf(loaded, selection.server);
    try {
      const result = await manager.callTool(server, tool, args);
      print(printableJson(result));
      return result.isError ? EXIT_FAILURE : EXIT_OK;
    } catch (failure) {
      complain(reasonOf(failure));
      return EXIT_FAILURE;
    }
  });
}

function argumentsOf(json: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new UsageError(`The arguments are no JSON: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UsageError('The arguments must be a JSON object');
  return value as Record<string, unknown>;
}
