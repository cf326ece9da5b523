import { member, type Span, splice } from '../wire/json.js';
import { memberEdits } from '../wire/members.js';
import { type Message, readMessage } from '../wire/message.js';
import { bodyOf, changedAt, isObject, paramOf, stringIn, textOf } from './members.js';

export const COMPLETE = '"resultType":"complete"';

/** What was called otherwise before tasks became an extension. */
const RENAMED: Readonly<Record<string, string>> = { ttl: 'ttlMs', pollInterval: 'pollIntervalMs' };
const RELATED_TASK = 'io.modelcontextprotocol/related-task';

/** A legacy call whose server is to make a task of it. Progress ends with its first answer, so none is asked for. */
export function asTask(call: Message): Message {
  if (!call.params) return call;
  const meta = paramOf(call, '_meta');
  const quiet = isObject(call, meta) ? changedAt(call, meta.start, { remove: ['progressToken'] }) : call;
  return changedAt(quiet, (quiet.params as Span).start, { set: { task: '{}' } });
}

/**
 * A task of 2025-11-25 as the extension has it, in members of a result, without the one named `except`. `at` is where the
 * task stands in the answer. Throws JsonError for a member that is given twice.
 */
export function taskMembers({ bytes }: Message, at: Span, except?: string): string {
  const set: Record<string, string> = {};
  for (const [old, name] of Object.entries(RENAMED)) {
    const span = member(bytes, at.start, old);
    if (span) set[name] = bytes.toString('utf8', span.start, span.end);
  }
  const remove = [...Object.keys(RENAMED), '_meta', 'resultType', ...(except === undefined ? [] : [except])];
  const task = bytes.subarray(at.start, at.end);
  return splice(task, memberEdits(task, 0, { remove, set }))
    .toString('utf8')
    .slice(1, -1)
    .trim();
}

/** A result of these members, which are JSON text, as the id is. */
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

/**
 * What a task that is over came to, as members of it: its result without the mark of the task, or its error. A tool that
 * failed by its own account has completed.
 */
export function outcomeMembers(outcome: Message): string[] {
  if (outcome.kind === 'error')
    return ['"status":"failed"', `"error":${textOf(outcome, outcome.body as Span)}`];
  const meta = bodyOf(outcome, '_meta');
  const plain = isObject(outcome, meta)
    ? changedAt(outcome, meta.start, { remove: [RELATED_TASK] })
    : outcome;
  return ['"status":"completed"', `"result":${textOf(plain, plain.body as Span)}`];
}
