import assert from 'node:assert/strict';
import { test } from 'node:test';
import { childEnvironment } from '../../src/upstream/stdio-env.js';

const GATEWAY = {
  PATH: '/bin',
  HOME: '/root',
  LC_ALL: 'C.UTF-8',
  LANG: 'de',
  SIDEGATE_TOKEN: 'secret',
  NODE_OPTIONS: '--inspect',
};

test('a child gets the allow-list and what is declared, nothing else of the gateway', () => {
  assert.deepEqual(childEnvironment(GATEWAY, { API_KEY: 'k' }, 'linux'), {
    PATH: '/bin',
    HOME: '/root',
    LC_ALL: 'C.UTF-8',
    LANG: 'de',
    API_KEY: 'k',
  });
});

test('a declared variable replaces the inherited one', () => {
  assert.equal(childEnvironment(GATEWAY, { PATH: '/opt' }, 'linux')['PATH'], '/opt');
});

test('a function exported by a shell is not handed on', () => {
  assert.deepEqual(childEnvironment({ TERM: '() { :; }; echo', USER: 'me' }, {}, 'linux'), { USER: 'me' });
});

test('Windows names are taken without regard to case, and only once', () => {
  const gateway = { Path: 'C:\\bin', SystemRoot: 'C:\\Windows', Secret: 's', HOME: 'h' };
  assert.deepEqual(childEnvironment(gateway, { PATH: 'D:\\bin' }, 'win32'), {
    SystemRoot: 'C:\\Windows',
    PATH: 'D:\\bin',
  });
});
