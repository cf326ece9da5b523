/**
 * The two hot paths, a cached list and a forwarded call, by agents of both eras, through the built gateway and directly:
 *
 *   npm run bench [-- --rounds 5 --seconds 2 --connections 16]
 *
 * Rounds are interleaved; the figures are medians over them. What counts on a shared machine is the ratio.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { type Era, type Figures, type Load, measure } from './load.js';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    connections: { type: 'string', default: '16' },
  },
});

interface Running {
  readonly url: string;
  readonly child: ChildProcess;
}

/** Starts a process and resolves with the first address that it prints. */
async function start(path: string, ...args: string[]): Promise<Running> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  child.stdout.setEncoding('utf8');
  let text = '';
  for await (const chunk of child.stdout) {
    text += chunk;
    const url = /http:\/\/\S+/.exec(text)?.[0];
    if (url && text.includes('\n')) {
      child.stdout.resume();
      return { url: url.endsWith(path) ? url : url + path, child };
    }
  }
  throw new Error(`${args.join(' ')} ended before it listened`);
}

const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

const upstream = await start('/mcp', '--import', 'tsx', 'test/bench/upstream.ts');
const gateway = await start('/mcp', 'dist/cli/main.js', upstream.url, '--port', '0', '--log-level', 'warn');
const candidates = { direct: upstream, sidegate: gateway };
const loads: readonly { readonly label: string; readonly era: Era; readonly method: Load['method'] }[] = [
  { label: 'tools/list', era: 'legacy', method: 'tools/list' },
  { label: 'tools/call', era: 'legacy', method: 'tools/call' },
  { label: 'tools/list 2026-07-28', era: 'modern', method: 'tools/list' },
  { label: 'tools/call 2026-07-28', era: 'modern', method: 'tools/call' },
];
const results = new Map<string, Figures[]>();
for (let round = 0; round <= Number(values.rounds); round++)
  for (const { label, era, method } of loads)
    for (const [name, { url, child }] of Object.entries(candidates)) {
      const load: Load = {
        url,
        era,
        method,
        pid: child.pid as number,
        connections: Number(values.connections),
        durationMs: Number(values.seconds) * 1000,
      };
      const figures = await measure(load);
      // The first round warms both up.
      if (round > 0) results.set(`${label} ${name}`, [...(results.get(`${label} ${name}`) ?? []), figures]);
    }
for (const { child } of [gateway, upstream]) {
  child.kill();
  await once(child, 'exit');
}

console.log(
  `Node ${process.version}, ${cpus()[0]?.model}, ${availableParallelism()} cores, ${values.connections} connections`,
);
console.log('| path | requests/s | p50 ms | p99 ms | CPU µs/request |');
console.log('| --- | ---: | ---: | ---: | ---: |');
for (const [name, rounds] of results) {
  const of = (pick: (figures: Figures) => number, digits: number) => median(rounds.map(pick)).toFixed(digits);
  const columns = [
    of((figures) => figures.perSecond, 0),
    of((figures) => figures.p50Ms, 2),
    of((figures) => figures.p99Ms, 2),
    of((figures) => figures.cpuMicros, 0),
  ];
  console.log(`| ${name} | ${columns.join(' | ')} |`);
}
