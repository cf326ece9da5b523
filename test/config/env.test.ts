import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toolListTtlFromEnv, variableOf, warnOnce } from '../../src/config/env.js';
import { nearest } from '../../src/config/nearest.js';
import { settingKeys } from '../../src/config/schema.js';

function ttl(value: string | undefined, warnings: string[] = []): number {
  return toolListTtlFromEnv({ SIDEGATE_TOOLLIST_TTL_MS: value }, 60_000, (message) => warnings.push(message));
}

describe('the TTL of lists in the environment', () => {
  it('counts where it is a number, and only there', () => {
    const warnings: string[] = [];
    assert.deepEqual(
      [undefined, '0', '5', ' 5 ', '1.5', '+7'].map((value) => ttl(value, warnings)),
      [60_000, 0, 5, 5, 1.5, 7],
    );
    assert.deepEqual(warnings, []);
  });

  it('keeps nothing where it is negative', () => {
    assert.equal(ttl('-1'), 0);
  });

  it('falls back with a warning where it is malformed', () => {
    for (const value of [
      'abc',
      '',
      ' ',
      'Infinity',
      '-Infinity',
      'NaN',
      '1e3',
      '0x10',
      '5s',
      '9'.repeat(400),
    ]) {
      const warnings: string[] = [];
      assert.equal(ttl(value, warnings), 60_000, value);
      assert.equal(warnings.length, 1, value);
    }
  });

  it('is read at the moment it is asked for', () => {
    const env: NodeJS.ProcessEnv = {};
    const read = () => toolListTtlFromEnv(env, 60_000, assert.fail);
    assert.equal(read(), 60_000);
    env['SIDEGATE_TOOLLIST_TTL_MS'] = '0';
    assert.equal(read(), 0);
    delete env['SIDEGATE_TOOLLIST_TTL_MS'];
    assert.equal(read(), 60_000);
  });

  it('is warned of once for each distinct value', () => {
    const warnings: string[] = [];
    const warn = warnOnce((message) => warnings.push(message));
    for (const value of ['abc', 'abc', 'x', 'abc', '5', 'x'])
      toolListTtlFromEnv({ SIDEGATE_TOOLLIST_TTL_MS: value }, 60_000, warn);
    assert.equal(warnings.length, 2);
    assert.match(warnings[0] ?? '', /^SIDEGATE_TOOLLIST_TTL_MS is "abc", not a number of milliseconds/);
  });
});

describe('the variable of a setting', () => {
  it('is its name in upper snake case', () => {
    assert.equal(variableOf('host'), 'SIDEGATE_HOST');
    assert.equal(variableOf('logLevel'), 'SIDEGATE_LOG_LEVEL');
    assert.equal(variableOf('maxRequestBytes'), 'SIDEGATE_MAX_REQUEST_BYTES');
    assert.equal(variableOf('toolListTtlMs'), 'SIDEGATE_TOOLLIST_TTL_MS');
    assert.equal(new Set(settingKeys().map(variableOf)).size, settingKeys().length);
  });
});

describe('the nearest name', () => {
  const names = ['host', 'port', 'logLevel', 'maxConnections'];

  it('is found through a slip of the fingers, another case and other separators', () => {
    assert.equal(nearest('prot', names), 'port');
    assert.equal(nearest('HOTS', names), 'host');
    assert.equal(nearest('log-level', names), 'logLevel');
    assert.equal(nearest('max_conection', names), 'maxConnections');
  });

  it('is none where nothing is near', () => {
    for (const name of ['', 'x', 'banana', 'connections of the maximum', 'x'.repeat(100_000)])
      assert.equal(nearest(name, names), undefined, name.slice(0, 30));
  });
});
