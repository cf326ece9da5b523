import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError, type GatewayErrorCode } from '../../src/base/errors.js';
import { type EraVerdict, verdictOf } from '../../src/upstream/era-verdict.js';
import { readMessage } from '../../src/wire/message.js';

type Kind = EraVerdict['kind'];

const result = (value: unknown) =>
  readMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${JSON.stringify(value)}}`));
const error = (code: number, data?: unknown) =>
  readMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code, message: 'm', data } })));
const failure = (code: GatewayErrorCode, status?: number) =>
  new GatewayError(code, 'why', status === undefined ? {} : { status });

/** What came of `server/discover`, and the verdict over HTTP and over a pipe. */
const OUTCOMES: readonly (readonly [what: string, outcome: unknown, http: Kind, stdio: Kind])[] = [
  ['a discovery of our revision', result({ supportedVersions: ['2026-07-28'] }), 'modern', 'modern'],
  [
    'a discovery of both eras',
    result({ supportedVersions: ['2026-07-28', '2025-11-25'] }),
    'modern',
    'modern',
  ],
  ['a discovery of tomorrow’s', result({ supportedVersions: ['2027-03-01'] }), 'unusable', 'unusable'],
  ['a discovery of nothing', result({ supportedVersions: [] }), 'unusable', 'unusable'],
  ['a discovery of legacy revisions', result({ supportedVersions: ['2025-11-25'] }), 'legacy', 'legacy'],
  ['another result', result({ tools: [] }), 'legacy', 'legacy'],
  ['a result that is null', result(null), 'legacy', 'legacy'],
  ['method not found', error(-32601), 'legacy', 'legacy'],
  ['invalid params', error(-32602), 'legacy', 'legacy'],
  ['not initialized', error(-32000), 'legacy', 'legacy'],
  ['header mismatch', error(-32020), 'unusable', 'unusable'],
  ['a missing capability', error(-32021), 'unusable', 'unusable'],
  ['unsupported, tomorrow’s named', error(-32022, { supported: ['2027-03-01'] }), 'unusable', 'unusable'],
  ['unsupported, ours named', error(-32022, { supported: ['2026-07-28'] }), 'again', 'again'],
  ['unsupported, none named', error(-32022), 'unusable', 'unusable'],
  ['unsupported, legacy ones named', error(-32022, { supported: ['2025-06-18'] }), 'legacy', 'legacy'],
  ...[400, 404, 405, 406, 415].map(
    (status) => [`status ${status}`, failure('server_unavailable', status), 'legacy', 'unknown'] as const,
  ),
  ...[401, 403, 407, 408, 425, 429, 500, 502, 503, 504].map(
    (status) => [`status ${status}`, failure('server_unavailable', status), 'unknown', 'unknown'] as const,
  ),
  ['a refused credential', failure('unauthorized', 401), 'unknown', 'unknown'],
  ['an unreachable address', failure('server_unavailable'), 'unknown', 'unknown'],
  ['silence', failure('server_timeout'), 'unknown', 'legacy'],
  ['the end of the connection', failure('outcome_unknown'), 'unknown', 'legacy'],
  ['a fault of ours', new Error('bug'), 'unknown', 'unknown'],
];

for (const [what, outcome, http, stdio] of OUTCOMES)
  test(`${what} is ${http} over HTTP and ${stdio} over a pipe`, () => {
    assert.equal(verdictOf(outcome, 'http').kind, http);
    assert.equal(verdictOf(outcome, 'stdio').kind, stdio);
  });

test('a server that speaks none of our revisions is told to the operator with those that it names', () => {
  const verdict = verdictOf(result({ supportedVersions: ['2027-03-01', 5] }), 'http');
  assert.match(verdict.kind === 'unusable' ? verdict.why : '', /2027-03-01/);
});
