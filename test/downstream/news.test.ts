import assert from 'node:assert/strict';
import { test } from 'node:test';
import { News } from '../../src/downstream/news.js';
import { notification } from '../../src/protocol/compose.js';

const changed = (kind: string) => notification(`notifications/${kind}/list_changed`);
const updated = (uri: string) => notification('notifications/resources/updated', { uri });
const texts = (news: News) => news.take().map((bytes) => JSON.parse(bytes.toString()));

test('a change is told once, however often it happened', () => {
  const news = new News();
  for (let i = 0; i < 200; i++) assert.equal(news.keep(changed('tools')), true);
  assert.deepEqual(texts(news), [{ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }]);
  assert.deepEqual(texts(news), []);
});

test('each kind of list and each resource is news of its own', () => {
  const news = new News();
  for (const message of [
    changed('tools'),
    changed('prompts'),
    updated('a:1'),
    updated('a:2'),
    updated('a:1'),
  ])
    assert.equal(news.keep(message), true);
  assert.equal(texts(news).length, 4);
});

test('other notifications are not kept', () => {
  const news = new News();
  assert.equal(news.keep(notification('notifications/message', { level: 'info', data: 1 })), false);
  assert.equal(news.keep(notification('notifications/progress', { progressToken: 1, progress: 1 })), false);
});

test('there is an end to what is kept', () => {
  const news = new News();
  const kept = Array.from({ length: 1_000 }, (_, n) => news.keep(updated(`a:${n}`))).filter(Boolean).length;
  assert.ok(kept >= 100 && kept < 1_000);
  assert.equal(news.keep(updated('a:0')), true);
  assert.equal(news.keep(updated(`a:${'x'.repeat(100_000)}`)), false);
});
