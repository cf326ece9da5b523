#!/usr/bin/env node
import { PRODUCT } from '../app/product.js';
import { parseCommand } from './args.js';
import { call } from './call.js';
import { check } from './check.js';
import { HELP } from './help.js';
import { exitAfter } from './lifecycle.js';
import { serve } from './serve.js';
import { complain, print } from './terminal.js';
import { tools } from './tools.js';
import { EXIT_OK, EXIT_USAGE, UsageError } from './usage.js';

/** What is written but not yet read of stdout may still leave in this time. */
const FLUSH_MS = 5_000;

async function run(argv: readonly string[]): Promise<number> {
  const command = parseCommand(argv);
  switch (command.name) {
    case 'help':
      print(HELP);
      return EXIT_OK;
    case 'version':
      print(PRODUCT.version);
      return EXIT_OK;
    case 'serve':
      return serve(command);
    case 'tools':
      return tools(command);
    case 'call':
      return call(command);
    case 'check':
      return check(command);
  }
}

async function main(): Promise<void> {
  // A reader that has left, `| head` for one, is no fault of ours.
  process.stdout.on('error', () => {});
  process.stderr.on('error', () => {});
  try {
    exitAfter(FLUSH_MS, await run(process.argv.slice(2)));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    complain(error.message);
    complain('`sidegate --help` shows what there is');
    exitAfter(FLUSH_MS, EXIT_USAGE);
  }
  process.stdin.destroy();
}

await main();
