// A legacy server over stdio, with its own way to take a question that it does not know:
//   node probed-child.mjs answer|flood|exit|silent|crash
// or, in spite of its name, a modern one that starts slowly: slow-modern
import { createInterface } from 'node:readline';

const manner = process.argv[2];

function say(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}

const results = {
  initialize: () => ({
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: manner, version: '1' },
  }),
  'tools/list': () => ({ tools: [{ name: 'pid', inputSchema: { type: 'object' } }] }),
  'tools/call': () => ({ content: [{ type: 'text', text: String(process.pid) }] }),
};

if (manner === 'slow-modern') {
  // As long as the deadline of a probe, in a test whose clock runs 25 times as fast.
  await new Promise((resolve) => setTimeout(resolve, 400));
  delete results.initialize;
  results['server/discover'] = () => ({
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: {} },
    ttlMs: 0,
    cacheScope: 'private',
  });
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line);
  if (id === undefined) continue;
  const result = results[method];
  if (result) say({ id, result: result() });
  else if (manner === 'exit') process.exit(1);
  else if (manner === 'crash') throw new Error('unknown method before initialize');
  else if (manner !== 'silent') {
    if (manner === 'flood') process.stderr.write('x'.repeat(300_000));
    const refused = manner === 'slow-modern' ? -32022 : -32601;
    say({ id, error: { code: refused, message: 'Refused', data: { supported: ['2026-07-28'] } } });
  }
}
