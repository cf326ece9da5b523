import {
  HEADER_MISMATCH,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  MISSING_CLIENT_CAPABILITY,
  UNSUPPORTED_PROTOCOL_VERSION,
} from '../protocol/codes.js';
import { errorCodeOf } from '../wire/error-code.js';
import { type Edit, repeated, type Span, scanMembers } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import { edited } from './edited.js';
import { misbehaved } from './faults.js';
import { bodyOf, changedAt, isObject, stringIn, textOf } from './members.js';

const INPUT_REQUIRED = Buffer.from('input_required');
const ESCAPE = Buffer.from('\\u');

/** What a modern server's result is: the word in its `resultType`. */
export function resultTypeOf(answer: Message): string | undefined {
  if (answer.kind !== 'result') return undefined;
  const span = bodyOf(answer, 'resultType');
  return span && (stringIn(answer, span) ?? textOf(answer, span));
}

/** Whether a result asks for input. Nearly none does, and then most are not looked into. */
export function isInputRequired(answer: Message): boolean {
  const { bytes } = answer;
  return (
    (bytes.includes(INPUT_REQUIRED) || bytes.includes(ESCAPE)) && resultTypeOf(answer) === 'input_required'
  );
}

/**
 * A modern server's answer as legacy revisions have it, with more `edits` within its result. Throws GatewayError
 * `server_protocol` for a kind of result that cannot be told to a legacy agent.
 */
export function legacyAnswer(answer: Message, serverId: string, edits: readonly Edit[] = []): Message {
  if (answer.kind === 'error') return legacyError(answer, serverId);
  if (!isObject(answer, answer.body)) return answer;
  const typed = resultType(answer, answer.body.start);
  if (!typed) return edited(answer, edits);
  const type = stringIn(answer, typed.value) ?? textOf(answer, typed.value);
  if (type === 'complete') return edited(answer, [...edits, typed.removal]);
  const what = `answered with a result of type ${JSON.stringify(type.slice(0, 50))}`;
  throw misbehaved(serverId, `${what}, which its agent's revision does not have`);
}

interface Typed {
  readonly value: Span;
  readonly removal: Edit;
}

/** The type of the result at `at` and how it is taken out, in one reading: results may be large. */
function resultType({ bytes }: Message, at: number): Typed | undefined {
  let value: Span | undefined;
  let from = at + 1;
  let to: number | undefined;
  let lastEnd = at + 1;
  scanMembers(bytes, at, (name, nameAt, start, end) => {
    if (name === 'resultType') {
      if (value) throw repeated(name, nameAt);
      value = { start, end };
      from = lastEnd === at + 1 ? nameAt : lastEnd;
      to = lastEnd === at + 1 ? undefined : end;
    } else if (value && to === undefined) to = nameAt;
    lastEnd = end;
  });
  return value && { value, removal: { start: from, end: to ?? lastEnd, text: '' } };
}

/** What becomes of codes that no legacy revision has: an agent can mend its capabilities, but not what the gateway sends. */
const MODERN_ONLY: ReadonlyMap<number | undefined, number> = new Map([
  [HEADER_MISMATCH, INTERNAL_ERROR],
  [MISSING_CLIENT_CAPABILITY, INVALID_PARAMS],
  [UNSUPPORTED_PROTOCOL_VERSION, INTERNAL_ERROR],
]);

function legacyError(answer: Message, serverId: string): Message {
  const given = errorCodeOf(answer);
  const code = MODERN_ONLY.get(given);
  if (code === undefined || !answer.body) return answer;
  const [message, data] = [bodyOf(answer, 'message'), bodyOf(answer, 'data')];
  const said = stringIn(answer, message);
  const why =
    code === INVALID_PARAMS
      ? `Server "${serverId}" needs a capability that its agent did not declare`
      : `Server "${serverId}" refused what the gateway sent`;
  const set = {
    code: String(code),
    message: JSON.stringify(said ? `${why}: ${said}` : why),
    data: dataOf(serverId, given, message && textOf(answer, message), data && textOf(answer, data)),
  };
  return changedAt(answer, answer.body.start, { set });
}

/** The server's own error, as it spelled it, below a name that says whose it is. */
function dataOf(serverId: string, code: number | undefined, message?: string, data?: string): string {
  const members = [
    `"code":${code}`,
    ...(message === undefined ? [] : [`"message":${message}`]),
    ...(data === undefined ? [] : [`"data":${data}`]),
  ];
  return `{"server":${JSON.stringify(serverId)},"error":{${members.join(',')}}}`;
}
