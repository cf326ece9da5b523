import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PATIENCE } from '../support/forwarding.js';
import type { ServerCall, Wire } from '../support/mcp-server.js';
import { ADA, ALL, broughtFor, FORM, modernOnLegacy, told } from '../support/modern-on-legacy.js';

const LINGER_MS = 30_000;
const CALL = { name: 'ask', arguments: {} };

/** Says one thing at each of these levels. */
function speak({ notify }: ServerCall): string {
  for (const level of ['debug', 'info', 'error', 'shout'])
    notify('notifications/message', { level, data: level });
  return told('done');
}

function levels(messages: readonly Wire[]): string[] {
  return messages
    .filter(({ method }) => method === 'notifications/message')
    .map(({ params }) => params.level as string);
}

function at(logLevel: string) {
  return { declaration: { ...ALL, logLevel } };
}

test(
  'a request hears its server from the level on that it asked for, and nothing without',
  PATIENCE,
  async (t) => {
    const bench = await modernOnLegacy(t, { call: speak });
    assert.deepEqual(levels(await bench.all('tools/call', CALL)), []);
    assert.deepEqual(levels(await bench.all('tools/call', CALL, at('info'))), ['info', 'error']);
    assert.deepEqual(levels(await bench.all('tools/call', CALL, at('debug'))), ['debug', 'info', 'error']);
  },
);

test(
  'the session is told a level before the request that asks for it, and each level once',
  PATIENCE,
  async (t) => {
    const order: string[] = [];
    const bench = await modernOnLegacy(t, {
      call: () => {
        order.push('call');
        return told('done');
      },
      on: {
        'logging/setLevel': ({ message }) => {
          order.push(message.params.level);
          return '{}';
        },
      },
    });
    for (const level of ['warning', 'error', 'debug', 'info']) await bench.all('tools/call', CALL, at(level));
    assert.deepEqual(order, ['warning', 'call', 'call', 'debug', 'call', 'call']);
  },
);

test('a level that nobody needed for long is taken back', PATIENCE, async (t) => {
  const levels: string[] = [];
  const bench = await modernOnLegacy(t, {
    call: () => told('done'),
    on: {
      'logging/setLevel': ({ message }) => {
        levels.push(message.params.level);
        return '{}';
      },
    },
  });
  await bench.all('tools/call', CALL, at('debug'));
  bench.clock.advance(LINGER_MS);
  await bench.all('tools/call', CALL, at('error'));
  assert.deepEqual(levels, ['debug', 'error']);
  bench.clock.advance(LINGER_MS);
  await bench.all('tools/call', CALL);
  await bench.server.until(() => bench.server.count('logging/setLevel') === 3);
  assert.deepEqual(levels, ['debug', 'error', 'emergency']);
});

test('a level is kept as long as a request needs it', PATIENCE, async (t) => {
  let finish: () => void = () => {};
  const bench = await modernOnLegacy(t, {
    call: ({ notify, message }) => {
      notify('notifications/vendor');
      if (!message.params.arguments.long) return told('done');
      return new Promise((resolve) => {
        finish = () => resolve(speak({ notify } as ServerCall));
      });
    },
    on: { 'logging/setLevel': () => '{}' },
  });
  const long = await bench.post('tools/call', { name: 'ask', arguments: { long: true } }, at('debug'));
  await long.message();
  bench.clock.advance(2 * LINGER_MS);
  await bench.all('tools/call', CALL, at('error'));
  await bench.all('tools/call', CALL);
  assert.equal(bench.server.count('logging/setLevel'), 1);
  finish();
  assert.deepEqual(levels(await long.rest()), ['debug', 'info', 'error']);
});

test('a server without logging is told no level', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t, { call: speak, capabilities: { tools: {} } });
  assert.deepEqual(levels(await bench.all('tools/call', CALL, at('error'))), ['error']);
  assert.equal(bench.server.count('logging/setLevel'), 0);
});

test('a server that refuses a level, or never takes it, is asked all the same', PATIENCE, async (t) => {
  let hang = false;
  const bench = await modernOnLegacy(t, {
    call: () => told('done'),
    on: {
      'logging/setLevel': () => {
        if (hang) return new Promise<string>(() => {});
        throw new Error('no');
      },
    },
  });
  const refused = await bench.all('tools/call', CALL, at('error'));
  assert.equal(refused.at(-1)?.result.resultType, 'complete');
  hang = true;
  const late = bench.all('tools/call', CALL, at('debug'));
  await bench.clock.armed((delayMs) => delayMs === 5_000);
  await bench.server.until(() => bench.server.count('logging/setLevel') === 2);
  bench.clock.advance(5_000);
  assert.equal((await late).at(-1)?.result.resultType, 'complete');
});

test('the level of a retry counts for what comes behind it', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t, {
    call: async ({ ask, notify }) => {
      await ask('elicitation/create', FORM);
      notify('notifications/message', { level: 'info', data: 'on' });
      return told('done');
    },
  });
  const asked = await bench.call(at('debug'));
  const retry = { ...CALL, ...broughtFor(asked, [ADA]) };
  assert.deepEqual(levels(await bench.all('tools/call', retry, at('error'))), []);
});

test('the stream of a request brings nothing that is about no request', PATIENCE, async (t) => {
  const speakOfOthers = ({ notify, message }: ServerCall) => {
    notify('notifications/tools/list_changed');
    notify('notifications/resources/updated', { uri: 'a:b' });
    notify('notifications/elicitation/complete', { elicitationId: 'e' });
    notify('notifications/progress', { progressToken: message.params._meta.progressToken, progress: 1 });
    notify('notifications/vendor', { kept: true });
    return told('done');
  };
  const bench = await modernOnLegacy(t, {
    call: speakOfOthers,
    on: { 'prompts/list': (call) => speakOfOthers(call).replace('content', 'prompts') },
  });
  const declaration = { ...ALL, progressToken: 'p' };
  for (const [method, params] of [
    ['tools/call', CALL],
    ['prompts/list', {}],
  ] as const) {
    const messages = await bench.all(method, params, { declaration });
    assert.deepEqual(
      messages.map(({ method, params }) => [method, params?.progressToken]),
      [
        ['notifications/progress', 'p'],
        ['notifications/vendor', undefined],
        [undefined, undefined],
      ],
    );
  }
});

test('a notification that names a member twice breaks nothing', PATIENCE, async (t) => {
  const bench = await modernOnLegacy(t, {
    call: ({ emit }) => {
      emit('{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","level":"error"}}');
      emit('{"jsonrpc":"2.0","method":"notifications/message","params":[1]}');
      emit('{"jsonrpc":"2.0","method":"notifications/message"}');
      return told('done');
    },
  });
  const messages = await bench.all('tools/call', CALL, at('debug'));
  assert.equal(messages.at(-1)?.result.resultType, 'complete');
  assert.deepEqual(levels(messages), []);
});
