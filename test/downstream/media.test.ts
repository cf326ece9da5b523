import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accepts, essence } from '../../src/wire/media.js';

test('a media type is compared without parameters and without case', () => {
  assert.equal(essence('application/json; charset=utf-8'), 'application/json');
  assert.equal(essence(' Text/Event-Stream;charset=UTF-8'), 'text/event-stream');
  assert.equal(essence(undefined), '');
});

test('an absent or blank Accept admits everything', () => {
  assert.equal(accepts(undefined, 'application/json'), true);
  assert.equal(accepts(' ', 'application/json'), true);
});

test('wildcards and lists admit what they name', () => {
  assert.equal(accepts('*/*', 'text/event-stream'), true);
  assert.equal(accepts('text/*', 'text/event-stream'), true);
  assert.equal(accepts('text/html, application/json;q=0.5', 'application/json'), true);
  assert.equal(accepts('text/html', 'application/json'), false);
  assert.equal(accepts('application/jsonp', 'application/json'), false);
});

test('quality zero excludes, and the closest range decides', () => {
  assert.equal(accepts('*/*, text/event-stream;q=0', 'text/event-stream'), false);
  assert.equal(accepts('text/event-stream;q=0.0, */*', 'text/event-stream'), false);
  assert.equal(accepts('text/*;q=0, text/event-stream', 'text/event-stream'), true);
});
