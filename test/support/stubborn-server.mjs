// A server on stdio that ignores the end of its input and SIGTERM. It keeps a connection to the port of its first
// argument, whose end tells a test that the process is gone. Its tool `hang` never answers; given `mute` as the second
// argument, it answers nothing at all and leaves when its input ends.
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

const [port, mute] = process.argv.slice(2);
const witness = connect(Number(port), '127.0.0.1');
if (!mute) process.on('SIGTERM', () => {});

const tool = { name: 'hang', inputSchema: { type: 'object' } };
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (mute || id === undefined) continue;
  if (method === 'tools/call') {
    witness.write('called\n');
    continue;
  }
  const about = {
    protocolVersion: params?.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'stubborn', version: '1' },
  };
  const result = method === 'initialize' ? about : { tools: [tool] };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
}
if (mute) process.exit(0);
