import { describe, test } from 'node:test';
import { legacyAgent, type MatrixAgent, modernAgent, type Place } from './agents.js';
import { CELLS } from './cells.js';
import { startLegacyServer } from './legacy-server.js';
import { startModernServer } from './modern-server.js';

/** The ends alone, so that what fails behind the gateway is the gateway's. */
const ends = {
  legacy: { connect: legacyAgent, start: startLegacyServer },
  modern: { connect: modernAgent, start: startModernServer },
};

for (const era of ['legacy', 'modern'] as const)
  for (const transport of ['HTTP', 'stdio'] as const)
    describe(`a ${era} agent straight on a ${era} server over ${transport}`, { timeout: 60_000 }, () => {
      test('does everything in the matrix', async (t) => {
        const server = transport === 'HTTP' ? await ends[era].start() : undefined;
        const command = ['node', '--import', 'tsx', `test/matrix/${era}-server.ts`];
        const place: Place = server ? { url: server.url } : { command };
        const agent: MatrixAgent = await ends[era].connect(place);
        try {
          for (const cell of CELLS) await t.test(cell.name, async () => void (await cell.run(agent, era)));
        } finally {
          await agent.close();
          await server?.close();
        }
      });
    });
