import assert from 'node:assert/strict';
import type { MatrixAgent } from './agents.js';
import { FAILURE, TOOLS } from './offer.js';

export type Era = 'legacy' | 'modern';

/** One row of the matrix. */
export interface Cell {
  readonly name: string;
  /** Does it and asserts its whole effect; what it returns is how it went, in one word for the table. */
  run(agent: MatrixAgent, agentEra: Era): Promise<'works' | 'not in 2026-07-28'>;
}

async function shows(check: () => Promise<void>): Promise<'works'> {
  await check();
  return 'works';
}

async function rejection(
  attempt: Promise<unknown>,
): Promise<{ code?: unknown; message: string; data?: unknown }> {
  const failure = await attempt.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(failure instanceof Error, 'it was not refused');
  return failure;
}

/** A method that is not there: the error itself, or the HTTP status that 2026-07-28 gives it. */
async function isUnknown(attempt: Promise<unknown>): Promise<void> {
  const { code, message } = await rejection(attempt);
  assert.match(`${String(code)} ${message}`, /-32601|404|not found|not supported|no method/i);
}

async function answers(agent: MatrixAgent, tool: string, expected: string): Promise<void> {
  assert.equal(await agent.call(tool), expected);
}

export const CELLS: readonly Cell[] = [
  {
    name: 'list',
    run: (agent) =>
      shows(async () => {
        for (const _ of ['miss', 'hit'])
          assert.deepEqual(
            (await agent.listTools()).filter((name) => name !== 'extra'),
            [...TOOLS],
          );
      }),
  },
  {
    name: 'call',
    run: (agent) =>
      shows(async () => {
        const given = { big: 2 ** 53 - 1, text: 'ü 😀', list: [null, { deep: true }] };
        assert.deepEqual(JSON.parse(await agent.call('echo', given)), given);
      }),
  },
  {
    name: 'prompts and resources',
    run: (agent) =>
      shows(async () => {
        assert.equal(await agent.prompt(), 'Hello');
        assert.equal(await agent.read(), 'seen');
      }),
  },
  {
    name: 'completion',
    run: (agent) => shows(async () => assert.deepEqual(await agent.complete(), ['Ada', 'Alan'])),
  },
  {
    name: 'progress',
    run: (agent) =>
      shows(async () => {
        const told: number[] = [];
        await agent.call('progress', {}, { onprogress: (progress) => told.push(progress) });
        assert.deepEqual(told, [1, 2, 3]);
      }),
  },
  {
    name: 'cancel',
    run: (agent) =>
      shows(async () => {
        const before = Number(await agent.call('aborted'));
        const aborter = new AbortController();
        const waiting = rejection(agent.call('wait', {}, { signal: aborter.signal }));
        // Behind the call: whatever it goes through has taken it.
        await agent.call('echo');
        aborter.abort();
        await waiting;
        while (Number(await agent.call('aborted')) === before);
      }),
  },
  {
    name: 'log',
    run: (agent) => shows(async () => assert.deepEqual(await agent.callAndLog('log'), ['warning: careful'])),
  },
  {
    name: 'list_changed',
    run: (agent) =>
      shows(async () => {
        await agent.watchTools();
        const before = await agent.listTools();
        await agent.call('change');
        await agent.heard('tools');
        assert.notDeepEqual(await agent.listTools(), before);
      }),
  },
  {
    name: 'subscribe',
    run: (agent) =>
      shows(async () => {
        await agent.watchResource();
        await agent.call('touch');
        await agent.heard('resource');
      }),
  },
  { name: 'elicitation, form', run: (agent) => shows(() => answers(agent, 'ask-form', '{"name":"Ada"}')) },
  { name: 'elicitation, url', run: (agent) => shows(() => answers(agent, 'ask-url', 'accept')) },
  { name: 'sampling', run: (agent) => shows(() => answers(agent, 'sample', 'something')) },
  {
    name: 'roots',
    run: (agent) => shows(() => answers(agent, 'roots', '[{"uri":"file:///home/ada"}]')),
  },
  {
    name: 'error with data',
    run: (agent) =>
      shows(async () => {
        const { code, message, data } = await rejection(agent.call('fail'));
        assert.deepEqual({ code, data }, { code: FAILURE.code, data: FAILURE.data });
        assert.ok(message.includes(FAILURE.message), message);
      }),
  },
  {
    name: 'error for an unknown method',
    run: (agent) => shows(() => isUnknown(agent.raw('vendor/unknown'))),
  },
  {
    name: 'ping',
    async run(agent, era) {
      if (era === 'legacy') return shows(async () => void (await agent.raw('ping')));
      await isUnknown(agent.raw('ping'));
      return 'not in 2026-07-28';
    },
  },
];
