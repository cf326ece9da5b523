import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accepts, essence } from '../../src/wire/media.js';

test('the essence of a content type has neither parameters nor capitals nor spaces', () => {
  assert.equal(essence('Text/Event-Stream;charset=UTF-8'), 'text/event-stream');
  assert.equal(essence(' application/json ; charset=utf-8'), 'application/json');
  assert.equal(essence('application/json'), 'application/json');
  assert.equal(essence(undefined), '');
  assert.equal(essence(''), '');
});

test('a type that only begins like another has another essence', () => {
  assert.equal(essence('application/json-seq'), 'application/json-seq');
});

test('an absent or empty Accept header admits every type', () => {
  assert.ok(accepts(undefined, 'application/json'));
  assert.ok(accepts(' ', 'application/json'));
});

test('an Accept header admits a type by name, by its family and by the wild card', () => {
  assert.ok(accepts('Application/JSON, text/event-stream', 'application/json'));
  assert.ok(accepts('application/json;q=0.5', 'application/json'));
  assert.ok(accepts('text/*', 'text/event-stream'));
  assert.ok(accepts('*/*', 'text/event-stream'));
  assert.ok(!accepts('application/json', 'text/event-stream'));
  assert.ok(!accepts('application/jsonx', 'application/json'));
});

test('weight zero refuses, and the most specific range decides', () => {
  assert.ok(!accepts('application/json;q=0', 'application/json'));
  assert.ok(!accepts('*/*, application/json; q=0.0', 'application/json'));
  assert.ok(accepts('*/*;q=0, application/json', 'application/json'));
  assert.ok(accepts('application/json;q=0.01', 'application/json'));
});
