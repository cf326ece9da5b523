import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/base/errors.js';
import { profileOf, welcome } from '../../src/downstream/profile.js';
import { readMessage } from '../../src/wire/message.js';

const initialize = (params: string) =>
  readMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":${params}}`));
const refusedAsInvalid = (error: unknown) =>
  error instanceof GatewayError && error.code === 'invalid_request';

test('what an agent says of itself is kept as it is spelled', () => {
  const profile = profileOf(
    initialize(
      '{"protocolVersion":"2025-06-18","capabilities":{ "x" : 1.0 },"clientInfo":{"name":"\\u0061"}}',
    ),
  );
  assert.equal(profile.revision, '2025-06-18');
  assert.equal(profile.capabilities, '{ "x" : 1.0 }');
  assert.equal(profile.clientInfo, '{"name":"\\u0061"}');
});

test('declarations that mean the same have one fingerprint', () => {
  const one = profileOf(initialize('{"capabilities":{"a":{"x":1,"y":[1,{"q":1,"p":2}]},"b":{}}}'));
  const two = profileOf(initialize('{"capabilities":{"b":{ },"\\u0061":{"y":[1.0,{"p":2,"q":1}],"x":1}}}'));
  assert.equal(one.fingerprint, two.fingerprint);
  assert.notEqual(one.fingerprint, profileOf(initialize('{"capabilities":{"a":{}}}')).fingerprint);
});

test('the order of an array is part of a declaration', () => {
  const one = profileOf(initialize('{"capabilities":{"a":[1,2]}}'));
  assert.notEqual(one.fingerprint, profileOf(initialize('{"capabilities":{"a":[2,1]}}')).fingerprint);
});

test('an agent that says nothing has no capabilities', () => {
  const profile = profileOf(initialize('{}'));
  assert.equal(profile.capabilities, '{}');
  assert.equal(profile.fingerprint, '{}');
  assert.equal(profile.clientInfo, '');
  assert.equal(profile.revision, '2025-11-25');
});

test('a declaration that is ambiguous or absurdly deep is refused', () => {
  assert.throws(
    () => profileOf(initialize('{"capabilities":{},"capabilities":{"roots":{}}}')),
    refusedAsInvalid,
  );
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  assert.throws(() => profileOf(initialize(`{"capabilities":${deep}}`)), refusedAsInvalid);
});

const answer = (body: string) => readMessage(Buffer.from(`{"jsonrpc":"2.0",${body},"id":77}`));

test('the server answer differs in id and revision only', () => {
  const response = answer('"result":{"x":1e400,"protocolVersion" : "2025-11-25","serverInfo":{"name":"s"}}');
  const { bytes, revision } = welcome(response, '"q"', '2025-06-18', 'one');
  assert.equal(revision, '2025-06-18');
  assert.equal(
    bytes.toString(),
    '{"jsonrpc":"2.0","result":{"x":1e400,"protocolVersion" : "2025-06-18","serverInfo":{"name":"s"}},"id":"q"}',
  );
});

test('the revision is one that both sides can speak', () => {
  const older = answer('"result":{"protocolVersion":"2025-03-26"}');
  assert.equal(welcome(older, '1', '2025-11-25', 'one').revision, '2025-03-26');
  assert.equal(welcome(older, '1', '2099-01-01', 'one').revision, '2025-03-26');
  assert.equal(welcome(older, '1', '2024-11-05', 'one').revision, '2024-11-05');
});

test('a refusal passes with the id of the agent, and no session stands', () => {
  const { bytes, revision } = welcome(
    answer('"error":{"code":1234,"message":"no","data":{"a":1}}'),
    '5',
    '',
    'one',
  );
  assert.equal(
    bytes.toString(),
    '{"jsonrpc":"2.0","error":{"code":1234,"message":"no","data":{"a":1}},"id":5}',
  );
  assert.equal(revision, undefined);
});

test('an answer without a revision is the fault of the server, which is named', () => {
  assert.throws(
    () => welcome(answer('"result":{}'), '1', '2025-11-25', 'one'),
    (error) =>
      error instanceof GatewayError && error.code === 'server_protocol' && error.message.includes('one'),
  );
});
