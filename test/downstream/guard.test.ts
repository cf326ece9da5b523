import assert from 'node:assert/strict';
import { test } from 'node:test';
import { corsHeaders, createGuard, isLoopback } from '../../src/downstream/guard.js';

const LOCAL = createGuard({ host: '127.0.0.1', allowedHosts: [], allowedOrigins: [] });
const PUBLIC = createGuard({ host: '0.0.0.0', allowedHosts: [], allowedOrigins: ['https://app.example'] });

test('a request without Origin to a loopback host is allowed', () => {
  for (const host of ['localhost', 'LOCALHOST:80', '127.0.0.1:8080', '127.9.9.9', '[::1]', '[::1]:8080'])
    assert.deepEqual(LOCAL(host, undefined), { allowed: true, corsOrigin: undefined }, host);
});

test('a foreign Host is refused while the listener is bound to loopback', () => {
  for (const host of [
    'evil.example',
    'evil.example:8080',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '',
  ])
    assert.equal(LOCAL(host, undefined).allowed, false, host);
  assert.equal(LOCAL(undefined, undefined).allowed, false);
});

test('any Host is taken by a listener bound elsewhere, unless hosts are listed', () => {
  assert.equal(PUBLIC('gateway.example', undefined).allowed, true);
  const listed = createGuard({ host: '0.0.0.0', allowedHosts: ['Gateway.example'], allowedOrigins: [] });
  assert.equal(listed('gateway.example:8080', undefined).allowed, true);
  assert.equal(listed('other.example', undefined).allowed, false);
  assert.equal(listed('127.0.0.1', undefined).allowed, false);
});

test('a listed host with a port is that port only', () => {
  const guard = createGuard({ host: '::1', allowedHosts: ['gateway.example:8080'], allowedOrigins: [] });
  assert.equal(guard('gateway.example:8080', undefined).allowed, true);
  assert.equal(guard('gateway.example:9090', undefined).allowed, false);
  assert.equal(guard('[::1]:1', undefined).allowed, true);
});

test('loopback origins are allowed on any port, by either scheme', () => {
  for (const origin of [
    'http://localhost',
    'https://localhost:3000',
    'http://127.0.0.1:5173',
    'http://[::1]:8080',
  ])
    assert.deepEqual(LOCAL('localhost', origin), { allowed: true, corsOrigin: origin });
});

test('foreign, opaque and misleading origins are refused', () => {
  const origins = [
    'null',
    '',
    'http://evil.example',
    'http://localhost.evil.example',
    'http://localhost@evil.example',
    'http://127.0.0.1.evil.example:80',
    'ftp://localhost',
    'http://localhost:80/path',
    'http://[::1].evil.example',
  ];
  for (const origin of origins) assert.equal(LOCAL('localhost', origin).allowed, false, origin);
});

test('a configured origin is allowed and no other of its site', () => {
  assert.deepEqual(PUBLIC('x', 'https://app.example'), { allowed: true, corsOrigin: 'https://app.example' });
  for (const origin of ['http://app.example', 'https://app.example:8443', 'https://sub.app.example'])
    assert.equal(PUBLIC('x', origin).allowed, false, origin);
});

test('an allowed origin is echoed alone, never with credentials', () => {
  const headers = corsHeaders('https://app.example');
  assert.equal(headers['Access-Control-Allow-Origin'], 'https://app.example');
  assert.equal(headers['Vary'], 'Origin');
  assert.match(headers['Access-Control-Expose-Headers'] ?? '', /Mcp-Session-Id/);
  assert.equal('Access-Control-Allow-Credentials' in headers, false);
});

test('loopback is known by each of its spellings', () => {
  for (const host of ['localhost', '127.0.0.1', '127.255.0.3', '::1', '[::1]', 'LocalHost'])
    assert.equal(isLoopback(host), true, host);
  for (const host of ['0.0.0.0', '::', '128.0.0.1', '127.0.0.1.example', 'local'])
    assert.equal(isLoopback(host), false, host);
});
