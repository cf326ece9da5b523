import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseTarget, prefixOf, routeOf } from '../../src/downstream/routes.js';

test('each server has its endpoints below its own prefix', () => {
  const ids = ['one', 'two'];
  assert.deepEqual(routeOf('/servers/two/mcp', ids), {
    kind: 'mcp',
    serverId: 'two',
    prefix: '/servers/two',
  });
  assert.deepEqual(routeOf('/servers/one/sse', ids), {
    kind: 'sse',
    serverId: 'one',
    prefix: '/servers/one',
  });
  assert.deepEqual(routeOf('/servers/one/messages', ids), {
    kind: 'messages',
    serverId: 'one',
    prefix: '/servers/one',
  });
});

test('the short paths mean the only server, and none where there are several or no servers', () => {
  assert.deepEqual(routeOf('/mcp', ['one']), { kind: 'mcp', serverId: 'one', prefix: '' });
  assert.deepEqual(routeOf('/sse', ['one']), { kind: 'sse', serverId: 'one', prefix: '' });
  assert.equal(routeOf('/mcp', ['one', 'two']).kind, 'ambiguous');
  assert.equal(routeOf('/mcp', []).kind, 'ambiguous');
});

test('an id that needs it is percent-encoded, and found again', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', minLength: 1 }).filter((id) => id !== 'other'),
      (id) => {
        assert.deepEqual(routeOf(`${prefixOf(id)}/mcp`, ['other', id]), {
          kind: 'mcp',
          serverId: id,
          prefix: prefixOf(id),
        });
      },
    ),
  );
});

test('a server that is not configured is named', () => {
  assert.deepEqual(routeOf('/servers/a%20b/mcp', ['one']), { kind: 'unknown_server', serverId: 'a b' });
});

test('whatever else is no route, and nothing throws', () => {
  for (const path of [
    '',
    '/',
    '*',
    '/mcp/',
    '/servers//mcp',
    '/servers/%zz/mcp',
    '/servers/one',
    '/MCP',
    '/servers/one/mcp/x',
  ])
    assert.deepEqual(routeOf(path, ['one']), { kind: 'none' }, path);
  fc.assert(fc.property(fc.string(), (path) => void routeOf(path, ['one'])));
});

test('a target is split into path and query, with or without an authority', () => {
  assert.equal(parseTarget('/messages?sessionId=a%2Bb').query.get('sessionId'), 'a+b');
  assert.equal(parseTarget('http://127.0.0.1:80/mcp?x').path, '/mcp');
  assert.equal(parseTarget('/mcp').path, '/mcp');
  fc.assert(fc.property(fc.string(), (url) => void parseTarget(url)));
});
