import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inContext, last, readDockerfile, type Stage } from '../support/dockerfile.js';
import { readText } from '../support/repository.js';

const stages = readDockerfile(readText('docker/Dockerfile'));
const image = stages.at(-1) as Stage;

test('the image runs as a user without rights, by number, so that an orchestrator can tell', () => {
  assert.match(last(image, 'USER'), /^[1-9]\d*:[1-9]\d*$/);
});

test('every stage stands on the same base', () => {
  assert.deepEqual([...new Set(stages.map(({ base }) => base))], ['node:24-slim']);
});

test('no secret and nothing built here reaches the build', () => {
  const ignored = readText('.dockerignore');
  for (const path of ['.env', '.git', 'sidegate.json', 'node_modules', 'dist', 'test', 'anything.else'])
    assert.equal(inContext(ignored, path), false, path);
  for (const path of ['src', 'package.json', '.ci']) assert.equal(inContext(ignored, path), true, path);
});
