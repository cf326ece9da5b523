// A small MCP server on stdio. Its tool lists name themselves: `listing-1`, `listing-2`, … Flags:
//   --greet=changed          sends `list_changed` in the same write as the answer to `initialize`
//   --changed=before|behind  sends `list_changed` in the same write as the answer to the first `tools/list`
//   --ttl=MS                 the TTL of its lists
//   --once                   leaves after the first list
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';

const flags = new Map(process.argv.slice(2).map((flag) => flag.replace(/^--/, '').split('=')));
const CHANGED = text({ method: 'notifications/tools/list_changed' });
let listings = 0;

function text(message) {
  return `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
}

function initialize({ id, params }) {
  const result = {
    protocolVersion: params.protocolVersion,
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: 'listing', version: '1' },
  };
  return text({ id, result }) + (flags.get('greet') === 'changed' ? CHANGED : '');
}

function list({ id }) {
  const tools = [{ name: `listing-${++listings}`, inputSchema: { type: 'object' } }];
  const ttl = flags.has('ttl') ? { ttlMs: Number(flags.get('ttl')) } : {};
  const answer = text({ id, result: { tools, ...ttl } });
  if (listings > 1) return answer;
  const changed = flags.get('changed');
  return (changed === 'before' ? CHANGED : '') + answer + (changed === 'behind' ? CHANGED : '');
}

const METHODS = { initialize, 'tools/list': list };

function answerTo(message) {
  const method = METHODS[message.method];
  if (method) return method(message);
  return text({ id: message.id, error: { code: -32601, message: 'Method not found' } });
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  if (message.id !== undefined) writeSync(1, answerTo(message));
  if (flags.has('once') && listings > 0) process.exit(0);
});
