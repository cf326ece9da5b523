import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError, type GatewayErrorCode } from '../../src/base/errors.js';
import { errorBytes, failureOf, refusal, sessionUnknown } from '../../src/downstream/errors.js';
import { MessageError } from '../../src/wire/message.js';

const parsed = (bytes: Buffer) => JSON.parse(bytes.toString());

test('failures of a server are in-band, with their code and the server', () => {
  const codes: GatewayErrorCode[] = [
    'server_disabled',
    'server_unavailable',
    'session_lost',
    'outcome_unknown',
    'server_timeout',
    'server_protocol',
    'too_large',
    'agent_unreachable',
    'invalid_request',
    'cancelled',
  ];
  for (const code of codes) {
    const failure = failureOf(new GatewayError(code, 'Server one did', { serverId: 'one' }), 'one');
    assert.equal(failure.status, 200, code);
    assert.deepEqual(failure.data, { code, server: 'one' });
    assert.deepEqual(failure.headers, {});
  }
});

test('a refused credential keeps its status and its challenge', () => {
  const details = { status: 401, challenge: 'Bearer resource_metadata="https://a.example/.well-known/x"' };
  const failure = failureOf(new GatewayError('unauthorized', 'No', details), 'one');
  assert.equal(failure.status, 401);
  assert.equal(failure.headers['WWW-Authenticate'], details.challenge);
  assert.equal(JSON.stringify(failure.data).includes('Bearer'), false);
  assert.equal(failureOf(new GatewayError('unauthorized', 'No', { status: 403 }), 'one').status, 403);
  assert.equal(failureOf(new GatewayError('unauthorized', 'No', { status: 500 }), 'one').status, 200);
});

test('a challenge that would break the header block is left out', () => {
  const details = { status: 401, challenge: 'Bearer\r\nSet-Cookie: a=b' };
  assert.deepEqual(failureOf(new GatewayError('unauthorized', 'No', details), 'one').headers, {});
});

test('a full gateway says when to come back', () => {
  const full = failureOf(new GatewayError('at_capacity', 'Full', { retryAfterMs: 1_500 }), 'one');
  assert.equal(full.status, 503);
  assert.equal(full.headers['Retry-After'], '2');
  const limited = failureOf(new GatewayError('at_capacity', 'Full', { status: 429 }), 'one');
  assert.equal(limited.status, 429);
  assert.equal(limited.headers['Retry-After'], '1');
});

test('what is no failure of ours is shown without its text', () => {
  const failure = failureOf(new TypeError('token abc is undefined'), 'one');
  assert.equal(JSON.stringify(failure).includes('abc'), false);
  assert.equal(failure.code, -32603);
});

test('broken JSON and a broken envelope are told apart', () => {
  assert.equal(failureOf(new MessageError('x', true), 'one').code, -32700);
  assert.equal(failureOf(new MessageError('x', false), 'one').code, -32600);
});

test('an error carries the id as it is spelled, or null', () => {
  assert.ok(errorBytes(refusal(404, 'No'), '9007199254740993').includes('"id":9007199254740993,'));
  assert.equal(parsed(errorBytes(sessionUnknown(), '')).id, null);
  assert.equal('data' in parsed(errorBytes(sessionUnknown(), '')).error, false);
});
