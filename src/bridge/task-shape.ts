import { member, type Span, splice } from '../wire/json.js';
import { memberEdits } from '../wire/members.js';
import { type Message, readMessage } from '../wire/message.js';
import { bodyOf, isObject, stringIn, textOf } from './members.js';

/** What was called otherwise before tasks became an extension. */
const RENAMED = { ttl: 'ttlMs', pollInterval: 'pollIntervalMs' } as const;
const RELATED_TASK = 'io.modelcontextprotocol/related-task';

/**
 * A task of 2025-11-25 as the extension has it, in members of a result. `at` is where the task stands in the answer.
 * https://modelcontextprotocol.io/extensions/tasks/overview
 */
export function taskMembers({ bytes }: Message, at: Span): string {
  const renamed = Object.entries(RENAMED).flatMap(([old, name]) => {
    const span = member(bytes, at.start, old);
    return span ? [[old, name, bytes.toString('utf8', span.start, span.end)] as const] : [];
  });
  const edits = memberEdits(bytes, at.start, {
    remove: [...renamed.map(([old]) => old), '_meta'],
    set: Object.fromEntries(renamed.map(([, name, text]) => [name, text])),
  });
  const moved = edits.map((edit) => ({ ...edit, start: edit.start - at.start, end: edit.end - at.start }));
  const object = splice(bytes.subarray(at.start, at.end), moved).toString('utf8');
  return object.slice(1, -1).trim();
}

/** A result of these members, which are JSON text. `id` too. */
export function resultOf(id: string, members: readonly string[]): Message {
  const text = members.filter((one) => one !== '').join(',');
  return readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{${text}}}`));
}

/** The task in the answer to a call that became one; undefined where it did not. */
export function createdTask(answer: Message): Span | undefined {
  const span = answer.kind === 'result' ? bodyOf(answer, 'task') : undefined;
  return isObject(answer, span) ? span : undefined;
}

export function statusOf(answer: Message): string | undefined {
  return stringIn(answer, bodyOf(answer, 'status'));
}

/** What a finished task came to, as members of a task: its result without the mark of the task, or its error. */
export function outcomeMembers(outcome: Message): string[] {
  const { body } = outcome;
  if (!body) return [];
  if (outcome.kind === 'error') return ['"status":"failed"', `"error":${textOf(outcome, body)}`];
  const meta = bodyOf(outcome, '_meta');
  const edits = isObject(outcome, meta)
    ? memberEdits(outcome.bytes, meta.start, { remove: [RELATED_TASK] })
    : [];
  const plain = edits.length > 0 ? readMessage(splice(outcome.bytes, edits)) : outcome;
  return ['"status":"completed"', `"result":${plain.body ? textOf(plain, plain.body) : '{}'}`];
}
