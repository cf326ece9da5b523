import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type FixtureOptions, startFixtureServer } from '../fixture-server.js';
import type { Run } from './checks.js';
import { startGateway } from './gateway.js';
import type { Referee } from './referee.js';

/** How the gateway reaches the fixture. */
export type Upstream = 'http' | 'stdio';

const fixtureCommand = ['node', '--import', 'tsx', 'test/conformance/fixture-server.ts', '--stdio'];

/** The fixture alone: what everything else is measured against. */
export async function runDirect(referee: Referee, revision: string, outputDir: string): Promise<Run> {
  const server = await startFixtureServer();
  try {
    return await referee.judge(server.url, revision, outputDir);
  } finally {
    await server.close();
  }
}

/** A fixture and a gateway of their own, so that no leg sees what another has changed or cached. */
export async function runThroughGateway(
  referee: Referee,
  upstream: Upstream,
  revision: string,
  outputDir: string,
  fixture: FixtureOptions = {},
): Promise<Run> {
  await mkdir(outputDir, { recursive: true });
  const server = upstream === 'http' ? await startFixtureServer(0, fixture) : undefined;
  try {
    const command = [...fixtureCommand, ...flagsOf(fixture)];
    const args = server ? [server.url, '--port', '0'] : ['--port', '0', '--', ...command];
    const gateway = await startGateway(args, join(outputDir, 'gateway.log'));
    try {
      return await referee.judge(gateway.url, revision, outputDir);
    } finally {
      await gateway.close();
    }
  } finally {
    await server?.close();
  }
}

function flagsOf({ legacyOnly, modernOnly }: FixtureOptions): string[] {
  return [...(legacyOnly ? ['--legacy-only'] : []), ...(modernOnly ? ['--modern-only'] : [])];
}
