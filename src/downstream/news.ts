import { listChangedKind } from '../protocol/methods.js';
import { member } from '../wire/json.js';
import type { Message } from '../wire/message.js';

/** Different news that are kept for one agent, and how long one of them may be. */
const MAX_NEWS = 256;
const MAX_NEWS_BYTES = 4_096;

/**
 * What an agent must hear of when it next listens: that a list changed, or that a resource was updated. Said once,
 * however often it happened.
 */
export class News {
  readonly #kept = new Map<string, Buffer>();

  /** False when the message is no such news, or there is no room. */
  keep(message: Message): boolean {
    const topic = topicOf(message);
    if (topic === undefined || message.bytes.length > MAX_NEWS_BYTES) return false;
    if (!this.#kept.has(topic) && this.#kept.size >= MAX_NEWS) return false;
    this.#kept.delete(topic);
    this.#kept.set(topic, Buffer.from(message.bytes));
    return true;
  }

  /** Everything kept, oldest first; nothing is kept afterwards. */
  take(): Buffer[] {
    const all = [...this.#kept.values()];
    this.#kept.clear();
    return all;
  }
}

function topicOf(message: Message): string | undefined {
  if (listChangedKind(message.method)) return message.method;
  if (message.method !== 'notifications/resources/updated' || !message.params) return undefined;
  const uri = member(message.bytes, message.params.start, 'uri');
  return uri && `${message.method} ${message.bytes.toString('utf8', uri.start, uri.end)}`;
}
