import assert from 'node:assert/strict';
import { PassThrough, Writable } from 'node:stream';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { GatewayEvent } from '../../src/pipeline/events.js';
import { LogOutput } from '../../src/telemetry/log-output.js';
import { createLogger, logEvent } from '../../src/telemetry/logs.js';
import { maskSecrets } from '../../src/telemetry/mask.js';

type Line = Record<string, unknown>;

function recorder(level: 'info' | 'trace' | 'silent' = 'trace') {
  const texts: string[] = [];
  const clock = { now: () => 0, after: () => assert.fail() };
  const logger = createLogger({ level, clock, output: { write: (text) => texts.push(text) } });
  return { logger, texts, lines: () => texts.map((text) => JSON.parse(text) as Line) };
}

const at = { serverId: 's', pool: 's' } as const;
const EVENTS: readonly (readonly [GatewayEvent, string])[] = [
  [{ type: 'server_connected', ...at, durationMs: 5 }, 'info'],
  [{ type: 'server_connect_failed', ...at, code: 'server_unavailable', message: 'm', retryInMs: 1 }, 'warn'],
  [{ type: 'server_disconnected', ...at, reason: 'idle', message: '' }, 'info'],
  [{ type: 'server_disconnected', ...at, reason: 'lost', message: 'm' }, 'warn'],
  [{ type: 'server_stderr', serverId: 's', line: 'l' }, 'debug'],
  [{ type: 'server_noise', serverId: 's', sample: 'x', total: 1 }, 'warn'],
  [{ type: 'message_dropped', serverId: 's', method: 'ping', why: 'w' }, 'debug'],
  [{ type: 'cache_outcome', serverId: 's', method: 'tools/list', outcome: 'hit' }, 'debug'],
  [{ type: 'cache_purged', serverId: 's', reason: 'list_changed', entries: 1 }, 'info'],
  [{ type: 'session_opened', serverId: 's', sessions: 1 }, 'debug'],
  [{ type: 'session_closed', serverId: 's', sessions: 0 }, 'debug'],
  [{ type: 'warning', message: 'm' }, 'warn'],
];

describe('the log', () => {
  it('has one JSON line for each event, with its level, its kind and all it says', () => {
    const { logger, texts, lines } = recorder();
    for (const [event, level] of EVENTS) {
      logEvent(logger, event);
      const { level: shown, event: kind, time, msg, ...rest } = lines().at(-1) as Line;
      assert.deepEqual([shown, kind, time], [level, event.type, '1970-01-01T00:00:00.000Z']);
      assert.ok(typeof msg === 'string' && msg !== '', event.type);
      const { type, ...fields } = event;
      assert.deepEqual(rest, fields, type);
    }
    for (const text of texts) assert.match(text, /^[^\n]+\n$/);
  });

  it('leaves out what is below its level, and everything when it is silent', () => {
    const info = recorder('info');
    const silent = recorder('silent');
    for (const [event] of EVENTS) for (const { logger } of [info, silent]) logEvent(logger, event);
    assert.equal(info.lines().length, EVENTS.filter(([, level]) => level !== 'debug').length);
    assert.equal(silent.lines().length, 0);
  });

  it('shows no value under a name that means a secret', () => {
    const { logger, texts } = recorder();
    const secret = 'hunter2';
    logger.info(
      { authorization: secret, token: secret, headers: { 'X-Key': secret }, env: { A: secret } },
      'm',
    );
    logger.info({ target: { cookie: secret, headers: { a: secret }, env: { B: secret }, kept: 'yes' } }, 'm');
    assert.ok(!texts.join('').includes(secret), texts.join(''));
    assert.match(texts.join(''), /"kept":"yes"/);
  });

  it('shows no credential that stands in a text', () => {
    const { logger, texts } = recorder();
    const line = 'sent Authorization: Bearer s3cr3t.x-y to https://u:s3cr3t@a.example/?a=1&api_key=s3cr3t';
    logEvent(logger, { type: 'server_stderr', serverId: 's', line });
    logEvent(logger, { type: 'warning', message: '{"authorization": "Basic s3cr3t"} bearer s3cr3t' });
    assert.ok(!texts.join('').includes('s3cr3t'), texts.join(''));
    for (const text of texts) assert.ok(JSON.parse(text));
  });
});

describe('the mask', () => {
  it('leaves ordinary text as it is', () => {
    for (const text of [
      'the bearer of news',
      'https://a.example/x?page=2',
      'a // b @ c',
      'authorization failed',
      'mcpServers.x.headers.Authorization: variable TOKEN is not set',
      'mcpServers.x.headers.X-Api-Key: holds what no header can carry',
      'mcpServers.x.env.API_KEY: variable KEY is not set',
    ])
      assert.equal(maskSecrets(text).replace('[redacted]', 'of'), text);
  });

  it('keeps every JSON line a JSON line', () => {
    const piece = fc.constantFrom(
      'Bearer ',
      'x',
      '"',
      '\\',
      ' ',
      'authorization',
      ':',
      '=',
      '//',
      '@',
      '?token=',
      '\n',
    );
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        assert.ok(JSON.parse(maskSecrets(JSON.stringify({ msg: pieces.join('') }))));
      }),
      { numRuns: 2000 },
    );
  });

  it('takes time linear to the text', () => {
    for (const hostile of [
      'bearer ',
      'authorization',
      'authorization: ',
      '//',
      '?',
      '?token',
      '&a',
      ' ',
      '//a@',
    ])
      maskSecrets(hostile.repeat(100_000));
  });
});

describe('the output of the log', () => {
  it('ends for good when its reader is gone, without an error anywhere', async () => {
    let writes = 0;
    const stream = new Writable({
      write(_chunk, _encoding, done) {
        writes++;
        done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
      },
    });
    const output = new LogOutput(stream);
    const failed = new Promise((resolve) => stream.once('error', resolve));
    output.write('a\n');
    await failed;
    for (let i = 0; i < 100; i++) output.write('b\n');
    assert.equal(writes, 1);
  });

  it('drops lines instead of memory while nobody reads, and says so afterwards', () => {
    const stream = new PassThrough({ highWaterMark: 1 });
    const output = new LogOutput(stream, 100);
    for (let i = 0; i < 1000; i++) output.write('0123456789\n');
    assert.ok(stream.writableLength + stream.readableLength < 300);
    while (stream.read() !== null);
    output.write('after\n');
    const text = String(stream.read()) + String(stream.read() ?? '');
    assert.match(text, /"level":"warn","dropped":\d+.*\nafter\n$/s);
  });
});
