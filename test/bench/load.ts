import { readFileSync } from 'node:fs';
import { Pool } from 'undici';

export interface Figures {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Processor time of the measured process for each request; NaN where the system does not tell. */
  readonly cpuMicros: number;
}

export type Era = 'legacy' | 'modern';

export interface Load {
  readonly url: string;
  readonly era: Era;
  readonly method: 'tools/list' | 'tools/call';
  readonly connections: number;
  readonly durationMs: number;
  /** Process whose time is measured. */
  readonly pid: number;
}

const MODERN = '2026-07-28';
const META = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/**
 * Asks as fast as the answers come; every answer is checked. Each connection is an agent: in the legacy era with a
 * session of its own, in the modern one with all that it says of itself in each request.
 */
export async function measure(load: Load): Promise<Figures> {
  const { origin, pathname } = new URL(load.url);
  const pool = new Pool(origin, { connections: load.connections, pipelining: 1 });
  const latencies: number[] = [];
  const agents = await Promise.all(
    Array.from({ length: load.connections }, () => headersOf(load, pool, pathname)),
  );
  const cpuBefore = cpuMs(load.pid);
  const startedAt = performance.now();
  const until = startedAt + load.durationMs;
  await Promise.all(
    agents.map(async (headers, agent) => {
      for (let id = 2; performance.now() < until; id++) {
        const sentAt = performance.now();
        await ask(pool, pathname, headers, load, id, `${agent}-${id}`);
        latencies.push(performance.now() - sentAt);
      }
    }),
  );
  const elapsedMs = performance.now() - startedAt;
  const cpu = cpuMs(load.pid) - cpuBefore;
  await pool.close();
  latencies.sort((a, b) => a - b);
  const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN;
  return {
    requests: latencies.length,
    perSecond: (latencies.length / elapsedMs) * 1000,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    cpuMicros: (cpu * 1000) / latencies.length,
  };
}

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** What every request of one agent bears. */
async function headersOf({ era, method }: Load, pool: Pool, path: string): Promise<Record<string, string>> {
  if (era === 'legacy') return await begin(pool, path);
  const name = method === 'tools/call' ? { 'mcp-name': 'tool_0' } : {};
  return { ...HEADERS, 'mcp-protocol-version': MODERN, 'mcp-method': method, ...name };
}

async function begin(pool: Pool, path: string): Promise<Record<string, string>> {
  const params = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1' },
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const response = await pool.request({ path, method: 'POST', headers: HEADERS, body });
  await response.body.text();
  const session = response.headers['mcp-session-id'];
  return typeof session === 'string' ? { ...HEADERS, 'mcp-session-id': session } : HEADERS;
}

async function ask(
  pool: Pool,
  path: string,
  headers: Record<string, string>,
  { method, era }: Load,
  id: number,
  mark: string,
): Promise<void> {
  const meta = era === 'modern' ? { _meta: META } : {};
  const given = method === 'tools/call' ? { name: 'tool_0', arguments: { text: mark } } : {};
  const params = { ...meta, ...given };
  const body = JSON.stringify({ jsonrpc: '2.0', id, method, params });
  const response = await pool.request({ path, method: 'POST', headers, body });
  const text = await response.body.text();
  const expected = method === 'tools/call' ? mark : '"tool_28"';
  if (!text.includes(`"id":${id}`) || !text.includes(expected))
    throw new Error(`Wrong answer: ${text.slice(0, 200)}`);
}

/** User and system time of a process; the kernel counts in hundredths of a second. */
function cpuMs(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return Number.NaN;
  }
}
