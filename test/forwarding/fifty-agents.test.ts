import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChannelServer } from '../support/channel-server.js';
import { forwarding } from '../support/forwarding.js';
import { McpServer, type Wire } from '../support/mcp-server.js';
import { type Exchanged, RawAgent } from '../support/raw-agent.js';
import { seeded, takeRandom } from '../support/seeded.js';

const AGENTS = 50;
const LANES = 4;
const CALLS = 25;
const TOTAL = AGENTS * LANES * CALLS;
const SEED = 20_251_125;
const PATIENCE = { timeout: 180_000 };

/** How agents number their requests, as JSON text: `n` counts from 1 in each of them. */
const IDS: readonly ((n: number) => string)[] = [
  () => '1',
  (n) => String(n),
  (n) => `"${n}"`,
  () => '"same"',
  (n) => String(9_007_199_254_740_993n + BigInt(n)),
];
/** Progress tokens, as JSON text: equal across agents, and within some. */
const TOKENS: readonly ((n: number) => string)[] = [
  () => '1',
  () => '"1"',
  () => '0',
  (n) => `"t${n}"`,
  (n) => String(n),
];

/** A call that waits at the server, and what the server does with it when its turn comes. */
interface Waiting {
  readonly message: Wire;
  readonly say: (method: string, params: object) => void;
  readonly answer: (result: string) => void;
}

/** Answers calls in random order: each that comes lets one of those that wait go, and each speaks of itself before. */
function shuffling(random: () => number): (call: Waiting) => void {
  const waiting: Waiting[] = [];
  return (call) => {
    waiting.push(call);
    setImmediate(() => {
      const { message, say, answer } = takeRandom(waiting, random);
      const { name, _meta } = message.params;
      const steps = Math.floor(random() * 3);
      for (let progress = 1; progress <= steps; progress++)
        say('notifications/progress', { progressToken: _meta.progressToken, progress, message: name });
      say('notifications/message', { level: 'info', data: name });
      answer(JSON.stringify({ content: [], name, steps }));
    });
  };
}

interface Heard {
  wrong: number;
  progress: number;
  expected: number;
  logs: number;
  /** Log lines on another stream of the right agent. */
  ofOtherCalls: number;
}

interface Call {
  readonly agent: string;
  readonly name: string;
  readonly id: string;
  readonly token: string;
}

function judge(done: Exchanged, { agent, name, id, token }: Call, heard: Heard): void {
  const { result } = done.answer;
  const isOwn = done.text.startsWith(`{"jsonrpc":"2.0","id":${id},`) && result?.name === name;
  if (!isOwn) heard.wrong++;
  heard.expected += result?.steps ?? 0;
  let last = 0;
  for (const { method, params } of done.before) {
    if (method === 'notifications/message') {
      heard.logs++;
      if (params.data !== name) heard.ofOtherCalls++;
      if (!params.data.startsWith(`${agent} `)) heard.wrong++;
      continue;
    }
    heard.progress++;
    const fits = JSON.stringify(params.progressToken) === token && params.message === name;
    if (!fits || params.progress !== ++last) heard.wrong++;
  }
}

/** Fifty agents call in parallel lanes until all calls are answered. */
async function callAll(url: string): Promise<Heard> {
  const heard: Heard = { wrong: 0, progress: 0, expected: 0, logs: 0, ofOtherCalls: 0 };
  const lanes: Promise<void>[] = [];
  for (let at = 0; at < AGENTS; at++) {
    const agent = await RawAgent.connect(url);
    const idOf = IDS[at % IDS.length] as (n: number) => string;
    const tokenOf = TOKENS[Math.floor(at / IDS.length) % TOKENS.length] as (n: number) => string;
    const mark = `agent ${at}`;
    let calls = 0;
    const lane = async () => {
      for (let call = 0; call < CALLS; call++) {
        const n = ++calls;
        const [name, id, token] = [`${mark} call ${n}`, idOf(n), tokenOf(n)];
        const params = `{"name":"${name}","_meta":{"progressToken":${token}}}`;
        judge(await agent.request('tools/call', params, id), { agent: mark, name, id, token }, heard);
      }
    };
    for (let count = 0; count < LANES; count++) lanes.push(lane());
  }
  await Promise.all(lanes);
  return heard;
}

test(
  'http: fifty agents on one session each get their own answers, progress and log lines, and no others',
  PATIENCE,
  async (t) => {
    const take = shuffling(seeded(SEED));
    const server = await McpServer.start({
      on: {
        'tools/call': (call) =>
          new Promise<string>((answer) => take({ message: call.message, say: call.notify, answer })),
      },
    });
    const bench = await forwarding(t, { servers: { one: { url: server.url } }, behind: [server] });
    const heard = await callAll(bench.url());
    assert.deepEqual([server.count('tools/call'), server.initialized.length], [TOTAL, 1]);
    assert.deepEqual(heard, {
      wrong: 0,
      progress: heard.expected,
      expected: heard.expected,
      logs: TOTAL,
      ofOtherCalls: 0,
    });
  },
);

test(
  'stdio: fifty agents on one child each get their own answers and progress, and no log line of others',
  PATIENCE,
  async (t) => {
    const take = shuffling(seeded(SEED));
    const server = await ChannelServer.start('stdio');
    server.on['tools/call'] = ({ message, answer }) => {
      take({ message, say: (method, params) => server.notify(method, params), answer });
      return undefined;
    };
    const bench = await forwarding(t, { servers: { one: server.entry }, behind: [server] });
    const heard = await callAll(bench.url());
    assert.deepEqual([server.count('tools/call'), server.connections], [TOTAL, 1]);
    assert.deepEqual(
      { wrong: heard.wrong, progress: heard.progress },
      { wrong: 0, progress: heard.expected },
    );
    // Nothing ties a log line to its call here: it reaches its agent while no other has a call under way, or nobody.
    assert.ok(heard.logs < TOTAL);
  },
);
