import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sha256Hex } from '../../src/base/hash.js';
import { listCacheKey, poolKey, poolKeyMatches, shownPoolKey } from '../../src/protocol/pool-key.js';

const digest = sha256Hex('secret-token');

test('a pool key is the server id without a token, and the id with the whole digest with one', () => {
  assert.equal(poolKey('alpha'), 'alpha');
  assert.equal(poolKey('alpha', digest), `alpha#${digest}`);
});

test('a pool key is shown with the first 12 digits of a token hash', () => {
  assert.equal(shownPoolKey('alpha'), 'alpha');
  assert.equal(shownPoolKey(poolKey('alpha', digest)), `alpha#${digest.slice(0, 12)}`);
  assert.equal(
    shownPoolKey(`alpha#${digest}#principal:somebody-long`),
    `alpha#${digest.slice(0, 12)}#principal:somebody-long`,
  );
});

test('a server id matches all of its keys and none of a server whose id begins alike', () => {
  for (const key of ['alpha', poolKey('alpha', digest), listCacheKey('alpha', 'alpha', 'public')])
    assert.ok(poolKeyMatches(key, 'alpha'), key);
  for (const key of ['alphaX', poolKey('alphaX', digest), 'alph', 'alpha2#ab'])
    assert.ok(!poolKeyMatches(key, 'alpha'), key);
});

test('a pool key matches itself, what was appended to it, and its own shown form only', () => {
  const key = poolKey('alpha', digest);
  const other = poolKey('alpha', sha256Hex('other'));
  assert.ok(poolKeyMatches(key, key));
  assert.ok(poolKeyMatches(`${key}#principal:bob`, key));
  assert.ok(poolKeyMatches(key, shownPoolKey(key)));
  assert.ok(!poolKeyMatches(other, key));
  assert.ok(!poolKeyMatches(other, shownPoolKey(key)));
  assert.ok(!poolKeyMatches('alpha', key));
});

test('public lists of a server have one place, which is nobody’s private partition', () => {
  const shared = listCacheKey(poolKey('alpha', digest), 'alpha', 'public');
  assert.equal(listCacheKey('alpha', 'alpha', 'public'), shared);
  assert.notEqual(shared, 'alpha');
  assert.equal(listCacheKey(poolKey('alpha', digest), 'alpha', 'private'), poolKey('alpha', digest));
  assert.notEqual(listCacheKey('beta', 'beta', 'public'), shared);
});
