/**
 * A server on the official SDK that offers everything the official conformance suite calls, to clients of every
 * revision from 2024-11-05 to 2026-07-28.
 *
 *   node --import tsx test/conformance/fixture-server.ts [--port N] [--legacy-only|--modern-only]   prints its URL
 *   node --import tsx test/conformance/fixture-server.ts --stdio [--legacy-only|--modern-only]
 */
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type FixtureOptions, type RunningFixture, serveHttp } from './fixture/http.js';
import { serveStandardStreams } from './fixture/stdio.js';

export type { FixtureOptions, RunningFixture };

/** Serves HTTP on the loopback interface; port 0 takes any free one. */
export function startFixtureServer(port = 0, options: FixtureOptions = {}): Promise<RunningFixture> {
  return serveHttp(port, options);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '0' },
      stdio: { type: 'boolean', default: false },
      'legacy-only': { type: 'boolean', default: false },
      'modern-only': { type: 'boolean', default: false },
    },
  });
  const options: FixtureOptions = {
    legacyOnly: values['legacy-only'],
    modernOnly: values['modern-only'],
  };
  if (values.stdio) await serveStandardStreams(options);
  else process.stdout.write(`${(await startFixtureServer(Number(values.port), options)).url}\n`);
}

const [, script] = process.argv;
if (script && realpathSync(script) === fileURLToPath(import.meta.url)) await main();
