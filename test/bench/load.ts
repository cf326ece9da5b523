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

export interface Load {
  readonly url: string;
  readonly method: 'tools/list' | 'tools/call';
  readonly connections: number;
  readonly durationMs: number;
  /** Process whose time is measured. */
  readonly pid: number;
}

/** Asks as fast as the answers come, each connection with a session of its own; every answer is checked. */
export async function measure(load: Load): Promise<Figures> {
  const { origin, pathname } = new URL(load.url);
  const pool = new Pool(origin, { connections: load.connections, pipelining: 1 });
  const latencies: number[] = [];
  const sessions = await Promise.all(Array.from({ length: load.connections }, () => begin(pool, pathname)));
  const cpuBefore = cpuMs(load.pid);
  const startedAt = performance.now();
  const until = startedAt + load.durationMs;
  await Promise.all(
    sessions.map(async (headers, agent) => {
      for (let id = 2; performance.now() < until; id++) {
        const sentAt = performance.now();
        await ask(pool, pathname, headers, load.method, id, `${agent}-${id}`);
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

async function begin(pool: Pool, path: string): Promise<Record<string, string>> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const params = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1' },
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const response = await pool.request({ path, method: 'POST', headers, body });
  await response.body.text();
  const session = response.headers['mcp-session-id'];
  return typeof session === 'string' ? { ...headers, 'mcp-session-id': session } : headers;
}

async function ask(
  pool: Pool,
  path: string,
  headers: Record<string, string>,
  method: Load['method'],
  id: number,
  mark: string,
): Promise<void> {
  const params = method === 'tools/call' ? { name: 'tool_0', arguments: { text: mark } } : {};
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
