import type { TestContext } from 'node:test';
import { Client, type ClientOptions, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { systemClock } from '../../src/base/clock.js';
import { startFixtureServer } from '../conformance/fixture-server.js';
import { openGateway, remote } from './pool-bench.js';
import { Happenings } from './stdio-harness.js';

export type Mode = 'legacy' | { readonly pin: '2026-07-28' };

export const MODERN: Mode = { pin: '2026-07-28' };
export const WATCHED = 'test://watched-resource';

/** An official client, and what it was told, each in short: `tools/list_changed`, `resources/updated <uri>`. */
export interface OfficialListener {
  readonly client: Client;
  readonly told: Happenings<string>;
  /** Resolves when it was told so. */
  heard(news: string): Promise<string>;
}

export async function officialListener(t: TestContext, url: string, mode: Mode): Promise<OfficialListener> {
  const options: ClientOptions = { versionNegotiation: { mode } };
  const client = new Client({ name: 'official', version: '1' }, options);
  const told = new Happenings<string>();
  for (const list of ['tools', 'prompts', 'resources'] as const)
    client.setNotificationHandler(`notifications/${list}/list_changed`, () =>
      told.add(`${list}/list_changed`),
    );
  client.setNotificationHandler('notifications/resources/updated', ({ params }) =>
    told.add(`resources/updated ${params.uri}`),
  );
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  t.after(() => client.close());
  return { client, told, heard: (news) => told.first((one) => one === news) };
}

/** The URL of a gateway before an official server that speaks one era or both. */
export async function officialServer(
  t: TestContext,
  speaks: { readonly legacyOnly?: boolean; readonly modernOnly?: boolean } = {},
): Promise<string> {
  const server = await startFixtureServer(0, speaks);
  t.after(() => server.close());
  const gateway = await openGateway(t, { one: remote(server.url) }, { clock: systemClock });
  return gateway.url();
}

/** The tools of the official server by which a client makes something change. */
export const CHANGES = {
  tools: 'test_trigger_tool_change',
  prompts: 'test_trigger_prompt_change',
  resource: 'test_trigger_resource_change',
} as const;
