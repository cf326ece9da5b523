import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { type Gateway, startGateway } from '../../src/index.js';
import { legacyAgent, modernAgent, type Place } from './agents.js';
import { CELLS, type Era } from './cells.js';
import { startLegacyServer } from './legacy-server.js';
import { startModernServer } from './modern-server.js';
import { Results, tableInReadme, writeToReadme } from './results.js';

/**
 * Every pair of eras through the gateway, with the official SDKs on both ends. What comes of it is the table in the
 * README.
 */
const ERAS = ['legacy', 'modern'] as const;
const CONNECT = { legacy: legacyAgent, modern: modernAgent };
const START = { legacy: startLegacyServer, modern: startModernServer };
const WAYS = [
  { agent: 'HTTP', server: 'HTTP' },
  { agent: 'HTTP', server: 'stdio' },
  { agent: 'stdio', server: 'HTTP' },
  { agent: 'stdio', server: 'stdio' },
] as const;
type Way = (typeof WAYS)[number];

const NODE = [process.execPath, '--import', 'tsx'];
const results = new Results();

/** Where an agent finds the gateway, and what ends it. */
interface Standing {
  readonly place: Place;
  end(): Promise<void>;
}

async function stand(way: Way, era: Era): Promise<Standing> {
  const server = way.server === 'HTTP' ? await START[era]() : undefined;
  const child = [...NODE, `test/matrix/${era}-server.ts`];
  if (way.agent === 'stdio') {
    const target = server ? [server.url] : ['--', ...child];
    const command = [...NODE, 'src/cli/main.ts', '--stdio', ...target];
    return { place: { command }, end: async () => server?.close() };
  }
  const [command, ...args] = child;
  const entry = server ? { type: 'http', url: server.url } : { command, args, cwd: process.cwd() };
  const gateway: Gateway = await startGateway({ mcpServers: { one: entry }, port: 0 });
  return {
    place: { url: `${gateway.url}/mcp` },
    async end() {
      await gateway.close();
      await server?.close();
    },
  };
}

for (const agentEra of ERAS)
  for (const serverEra of ERAS)
    for (const way of WAYS)
      describe(`a ${agentEra} agent over ${way.agent} on a ${serverEra} server over ${way.server}`, {
        timeout: 60_000,
      }, () => {
        test('does everything in the matrix', async (t) => {
          const { place, end } = await stand(way, serverEra);
          try {
            const agent = await CONNECT[agentEra](place);
            try {
              for (const cell of CELLS)
                await t.test(cell.name, async () => {
                  const how = await cell.run(agent, agentEra);
                  results.note(cell.name, `${agentEra} agent, ${serverEra} server`, how);
                });
            } finally {
              await agent.close();
            }
          } finally {
            await end();
          }
        });
      });

after(() => {
  const table = results.table();
  if (process.env['SIDEGATE_WRITE_MATRIX']) return writeToReadme(table);
  assert.equal(tableInReadme(), table, 'run `npm run docs`');
});
