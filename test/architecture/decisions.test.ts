import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filesBelow, readText } from '../support/repository.js';

const PAGE_WORDS = 500;

const decisions = filesBelow('adr').filter((path) => path !== 'adr/README.md');

test('every decision is in the index under its own name, and the index names no other', () => {
  const linked = [...readText('adr/README.md').matchAll(/\]\((\d{4}-[\w-]+\.md)\)/g)].map(
    ([, name]) => `adr/${name}`,
  );
  assert.deepEqual(linked, decisions);
});

test('every decision has the form that the index gives, on one page', () => {
  for (const path of decisions) {
    const text = readText(path);
    const number = /(\d{4})-/.exec(path)?.[1];
    assert.match(text, new RegExp(`^# ${number}\\. .+\n\nStatus: (?:accepted|replaced by \\d{4})\\b`), path);
    const headings = [...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
    assert.deepEqual(headings, ['Context', 'Decision', 'Consequences'], path);
    assert.ok(text.split(/\s+/).length <= PAGE_WORDS, `${path} is longer than a page`);
  }
});

test('every package that is depended on has its reason, and no other has one', () => {
  const manifest = JSON.parse(readText('package.json')) as Record<string, Record<string, string>>;
  const names = Object.keys({ ...manifest['dependencies'], ...manifest['devDependencies'] });
  const rows = readText('adr/0007-dependencies.md').match(/^\| `.*$/gm) ?? [];
  const explained = rows.flatMap((row) =>
    [...(row.split('|')[1] as string).matchAll(/`([^`]+)`/g)].map(([, name]) => name as string),
  );
  assert.deepEqual(explained.sort(), names.sort());
});
