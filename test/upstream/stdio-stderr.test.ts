import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StderrLog } from '../../src/upstream/stdio-stderr.js';
import { textReader } from '../../src/upstream/stdio-text.js';

function log(env: Record<string, string> = {}) {
  const lines: string[] = [];
  let now = 0;
  const clock = { now: () => now, after: () => ({ cancel: () => {} }) };
  const stderr = new StderrLog(textReader(env), (line) => lines.push(line), clock);
  return { lines, stderr, advance: (byMs: number) => (now += byMs) };
}

test('lines are reported one by one, blank ones not, the unfinished one at the end', () => {
  const { lines, stderr } = log();
  for (const chunk of ['on', 'e\n\n  \r\ntwo\r\nthr', 'ee']) stderr.push(Buffer.from(chunk));
  assert.deepEqual(lines, ['one', 'two']);
  stderr.end();
  assert.deepEqual(lines, ['one', 'two', 'three']);
});

test('a line without end is reported in pieces', () => {
  const { lines, stderr } = log();
  stderr.push(Buffer.alloc(5000, 0x78));
  assert.deepEqual(
    lines.map((line) => line.length),
    [2048, 2048],
  );
});

test('the tail is the last lines, bounded in number and in length', () => {
  const { stderr } = log();
  for (let i = 1; i <= 100; i++) stderr.push(Buffer.from(`line ${i}\n`));
  assert.equal(stderr.tail().split('\n').length, 20);
  assert.ok(stderr.tail().endsWith('line 99\nline 100'));
  for (let i = 0; i < 20; i++) stderr.push(Buffer.alloc(2048, 0x78));
  assert.ok(stderr.tail().length <= 4096);
});

test('a flood is cut off, its size reported, and the rate recovers with time', () => {
  const { lines, stderr, advance } = log();
  const flood = (): void => stderr.push(Buffer.from('noise\n'.repeat(500)));
  flood();
  assert.equal(lines.length, 100);
  advance(1000);
  flood();
  assert.deepEqual(lines.slice(100, 102), ['[400 lines suppressed]', 'noise']);
  assert.equal(lines.length, 111);
  stderr.end();
  assert.equal(lines.at(-1), '[490 lines suppressed]');
});

test('a clock that is set back stops nothing for longer than the rate', () => {
  const { lines, stderr, advance } = log();
  stderr.push(Buffer.from('noise\n'.repeat(100)));
  advance(-3_600_000);
  stderr.push(Buffer.from('lost\n'));
  advance(1000);
  stderr.push(Buffer.from('back\n'));
  assert.equal(lines.at(-1), 'back');
});

test('terminal codes and control characters do not reach the report', () => {
  const { lines, stderr } = log();
  stderr.push(Buffer.from('\u001b[31mred\u001b[0m\u0000 \u0007bell\n'));
  assert.deepEqual(lines, ['red   bell']);
});

test('the value of a declared variable is shown as its name', () => {
  const { lines, stderr } = log({
    API_KEY: 'sk-0123456789',
    PEM: 'begin-of-key\nmiddle-of-key\n',
    MODE: 'debug',
  });
  stderr.push(Buffer.from('bad key "sk-0123456789" in debug mode\nmiddle-of-key\n'));
  assert.deepEqual(lines, [`bad key "\${API_KEY}" in debug mode`, `\${PEM}`]);
  assert.ok(!stderr.tail().includes('sk-0123456789'));
});

test('of two secrets of which one contains the other, the longer one is hidden whole', () => {
  const { lines, stderr } = log({ SHORT: 'password', LONG: 'password-and-more' });
  stderr.push(Buffer.from('password-and-more\n'));
  assert.deepEqual(lines, [`\${LONG}`]);
});
