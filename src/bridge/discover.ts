import { SERVER_INFO_META, TASKS_EXTENSION } from '../protocol/meta.js';
import { MODERN_REVISIONS } from '../protocol/revisions.js';
import { splice } from '../wire/json.js';
import { memberEdits } from '../wire/members.js';
import { type Message, readMessage } from '../wire/message.js';
import { offersTasks } from './legacy-tasks.js';
import { bodyOf, isObject, textOf } from './members.js';

/** Capabilities of legacy servers that have another form in the modern era. */
const HIDDEN = ['tasks'];

/**
 * A DiscoverResult made of an InitializeResult; its capabilities, instructions and serverInfo are the server's bytes. `id`
 * is JSON text. An error is handed on.
 * https://modelcontextprotocol.io/specification/2026-07-28/server/discover#discoverresult
 */
export function discovered(initialize: Message, id: string): Message {
  if (initialize.kind === 'error') return initialize;
  const members = [
    '"resultType":"complete"',
    `"supportedVersions":${JSON.stringify(MODERN_REVISIONS)}`,
    `"capabilities":${capabilitiesOf(initialize)}`,
    ...copied(initialize, 'instructions'),
    `"_meta":${metaOf(initialize)}`,
  ];
  return readMessage(Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{${members.join(',')}}}`));
}

function capabilitiesOf(initialize: Message): string {
  const span = bodyOf(initialize, 'capabilities');
  if (!isObject(initialize, span)) return '{}';
  const plain = edited(textOf(initialize, span), { remove: HIDDEN });
  if (!offersTasks(initialize)) return plain;
  const extensions = bodyOf(initialize, 'capabilities', 'extensions');
  const others = isObject(initialize, extensions) ? textOf(initialize, extensions) : '{}';
  return edited(plain, { set: { extensions: edited(others, { set: { [TASKS_EXTENSION]: '{}' } }) } });
}

function metaOf(initialize: Message): string {
  const span = bodyOf(initialize, '_meta');
  const meta = isObject(initialize, span) ? textOf(initialize, span) : '{}';
  const info = bodyOf(initialize, 'serverInfo');
  return info ? edited(meta, { set: { [SERVER_INFO_META]: textOf(initialize, info) } }) : meta;
}

function copied(initialize: Message, name: string): string[] {
  const span = bodyOf(initialize, name);
  return span ? [`${JSON.stringify(name)}:${textOf(initialize, span)}`] : [];
}

function edited(object: string, changes: Parameters<typeof memberEdits>[2]): string {
  const bytes = Buffer.from(object);
  return splice(bytes, memberEdits(bytes, 0, changes)).toString('utf8');
}
