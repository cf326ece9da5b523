import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryStore } from '../../src/cache/memory.js';
import { readMessage } from '../../src/wire/message.js';
import { byKind, describeTier, entryOf } from './tier-contract.js';

describeTier('memory', () => memoryStore({ maxBytes: 1024 * 1024, maxEntries: 1_000 }));

function messageOf(bytes: number) {
  const head = '{"jsonrpc":"2.0","id":1,"result":{"tools":["';
  return readMessage(Buffer.from(`${head}${'x'.repeat(bytes - head.length - 4)}"]}}`));
}

test('the entry used longest ago makes room when there are too many', () => {
  const store = memoryStore({ maxBytes: 1024 * 1024, maxEntries: 2 });
  for (const variant of ['a', 'b']) store.commit(entryOf({ variant }));
  store.lookup(entryOf({ variant: 'a' }).key);
  store.commit(entryOf({ variant: 'c' }));
  assert.equal(store.lookup(entryOf({ variant: 'b' }).key), undefined);
  assert.ok(store.lookup(entryOf({ variant: 'a' }).key));
  assert.ok(store.lookup(entryOf({ variant: 'c' }).key));
});

test('entries make room when their bytes are too many, however few they are', () => {
  const store = memoryStore({ maxBytes: 300_000, maxEntries: 1_000 });
  for (let i = 0; i < 10; i++) store.commit(entryOf({ variant: `${i}`, message: messageOf(100_000) }));
  assert.equal(store.select(byKind('alpha', [])).length, 2);
});

test('a long key counts as much as a long answer', () => {
  const store = memoryStore({ maxBytes: 300_000, maxEntries: 1_000 });
  for (let i = 0; i < 10; i++) store.commit(entryOf({ variant: `${i}`.padEnd(50_000, 'k') }));
  assert.ok(store.select(byKind('alpha', [])).length <= 3);
});

test('an answer that does not fit is not kept, and neither is the older one of its key', () => {
  const store = memoryStore({ maxBytes: 10_000, maxEntries: 10 });
  store.commit(entryOf());
  store.commit(entryOf({ message: messageOf(20_000) }));
  assert.equal(store.lookup(entryOf().key), undefined);
  assert.equal(store.select(byKind('alpha', [])).length, 0);
});

test('a purge after many evictions still finds exactly what is kept', () => {
  const store = memoryStore({ maxBytes: 10 * 1024 * 1024, maxEntries: 50 });
  for (let i = 0; i < 500; i++) store.commit(entryOf({ place: `alpha#${i}` }));
  assert.equal(store.forget(byKind('alpha', ['tools'])), 50);
  assert.equal(store.forget(byKind('alpha', ['tools'])), 0);
});

test('a kept answer keeps no larger buffer alive than its own bytes', () => {
  const store = memoryStore({ maxBytes: 10 * 1024 * 1024, maxEntries: 10 });
  const text = '  {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}';
  const chunk = Buffer.alloc(1024 * 1024, ' ');
  chunk.write(text);
  const message = readMessage(chunk.subarray(2, text.length));
  store.commit(entryOf({ message }));
  const kept = store.lookup(entryOf().key)?.message;
  assert.equal(kept?.bytes.buffer.byteLength, text.length - 2);
  assert.deepEqual(kept.bytes, message.bytes);
  chunk.fill('!');
  assert.equal(kept.bytes.toString(), text.slice(2));
});
