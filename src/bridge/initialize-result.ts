import { SERVER_INFO_META, TASKS_EXTENSION } from '../protocol/meta.js';
import { LATEST_LEGACY_REVISION, negotiateLegacy } from '../protocol/revisions.js';
import { type Span, splice } from '../wire/json.js';
import { memberEdits } from '../wire/members.js';
import { type Message, readMessage } from '../wire/message.js';
import { bodyOf, isObject, textOf } from './members.js';

/** Capabilities that agents would take for those of an older revision. */
const HIDDEN = ['tasks'];

/**
 * An InitializeResult for an agent that asked for `revision`, made of a DiscoverResult; its capabilities, instructions and
 * serverInfo are the server's bytes. A server that does not say its name is given the one that it is configured under.
 * `id` is JSON text; an error is handed on.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#initialization
 */
export function initialized(discover: Message, id: string, revision: string, serverId: string): Message {
  if (discover.kind === 'error') return discover;
  const members = [
    `"protocolVersion":"${negotiateLegacy(revision, LATEST_LEGACY_REVISION)}"`,
    `"capabilities":${capabilitiesOf(discover)}`,
    `"serverInfo":${infoOf(discover, serverId)}`,
    ...copied(discover, 'instructions'),
    ...metaOf(discover),
  ];
  return readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{${members.join(',')}}}`));
}

function capabilitiesOf(discover: Message): string {
  const span = bodyOf(discover, 'capabilities');
  if (!isObject(discover, span)) return '{}';
  const extensions = bodyOf(discover, 'capabilities', 'extensions');
  const edits = isObject(discover, extensions)
    ? memberEdits(discover.bytes, extensions.start, { remove: [TASKS_EXTENSION] })
    : [];
  return within(discover, span, [...memberEdits(discover.bytes, span.start, { remove: HIDDEN }), ...edits]);
}

function infoOf(discover: Message, serverId: string): string {
  const span = bodyOf(discover, '_meta', SERVER_INFO_META);
  return isObject(discover, span) ? textOf(discover, span) : JSON.stringify({ name: serverId, version: '0' });
}

function metaOf(discover: Message): string[] {
  const span = bodyOf(discover, '_meta');
  if (!isObject(discover, span)) return [];
  const edits = memberEdits(discover.bytes, span.start, { remove: [SERVER_INFO_META] });
  const text = within(discover, span, edits);
  return text.replace(/\s/g, '') === '{}' ? [] : [`"_meta":${text}`];
}

/** JSON text of a range after edits that lie in it. */
function within({ bytes }: Message, { start, end }: Span, edits: ReturnType<typeof memberEdits>): string {
  const moved = edits.map((edit) => ({ ...edit, start: edit.start - start, end: edit.end - start }));
  return splice(bytes.subarray(start, end), moved).toString('utf8');
}

function copied(discover: Message, name: string): string[] {
  const span = bodyOf(discover, name);
  return span ? [`${JSON.stringify(name)}:${textOf(discover, span)}`] : [];
}
