import { isUtf8 } from 'node:buffer';
import {
  type Edit,
  forEachMember,
  JsonError,
  type Span,
  skipSpace,
  skipValue,
  splice,
  stringAt,
} from './json.js';

/** What a JSON-RPC 2.0 message is, decided by the members that it has. */
export type MessageKind = 'request' | 'notification' | 'result' | 'error';

/**
 * One JSON-RPC message: its bytes, and where in them the members lie that the gateway must know. Immutable.
 * https://www.jsonrpc.org/specification
 */
export interface Message {
  readonly bytes: Buffer;
  readonly kind: MessageKind;
  /** The method's name; empty for a response. */
  readonly method: string;
  /** The id as it is spelled (`1`, `"1"`, `9007199254740993`, `null`); empty where there is none. */
  readonly id: string;
  readonly idSpan: Span | undefined;
  readonly params: Span | undefined;
  /** `result` or `error` of a response. */
  readonly body: Span | undefined;
}

/** Text that is not one JSON-RPC message. `parse` tells broken JSON (-32700) from a broken envelope (-32600). */
export class MessageError extends Error {
  override readonly name = 'MessageError';
  readonly parse: boolean;
  /** Id of the offending request where it could be read. */
  readonly id: string;

  constructor(message: string, parse: boolean, id = '') {
    super(message);
    this.parse = parse;
    this.id = id;
  }
}

/** True when the text is a JSON array: a batch, which only revision 2025-03-26 knows. */
export function isBatch(bytes: Uint8Array): boolean {
  return bytes[skipSpace(bytes, 0)] === 0x5b;
}

/** Reads one message. Throws MessageError; looks at nothing below the top level. */
export function readMessage(bytes: Buffer): Message {
  if (!isUtf8(bytes)) throw new MessageError('The message is not UTF-8', true);
  const start = skipSpace(bytes, bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0);
  if (bytes[start] !== 0x7b) {
    checkWhole(bytes, start);
    throw new MessageError('The message is not a JSON object', false);
  }
  const seen: Record<string, Span | undefined> = { __proto__: null as never };
  let end: number;
  try {
    end = forEachMember(bytes, start, (name, from, to) => {
      if (ENVELOPE.has(name)) seen[name] = { start: from, end: to };
    });
  } catch (error) {
    if (error instanceof JsonError) throw new MessageError(error.message, !error.repeated);
    throw error;
  }
  if (skipSpace(bytes, end) !== bytes.length) throw new MessageError('Text after the message', true);
  const whole = start === 0 && end === bytes.length;
  return classify(whole ? bytes : bytes.subarray(start, end), whole ? seen : shift(seen, start));
}

const ENVELOPE = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error']);

function checkWhole(bytes: Buffer, start: number): void {
  try {
    if (skipSpace(bytes, skipValue(bytes, start)) === bytes.length) return;
  } catch (error) {
    throw new MessageError((error as Error).message, true);
  }
  throw new MessageError('Text after the message', true);
}

function shift(seen: Record<string, Span | undefined>, by: number): Record<string, Span | undefined> {
  const moved: Record<string, Span | undefined> = {};
  for (const name of ENVELOPE) {
    const span = seen[name];
    if (span) moved[name] = { start: span.start - by, end: span.end - by };
  }
  return moved;
}

function classify(bytes: Buffer, seen: Record<string, Span | undefined>): Message {
  const idSpan = seen['id'];
  const id = idSpan ? bytes.toString('utf8', idSpan.start, idSpan.end) : '';
  const fail = (why: string): never => {
    throw new MessageError(why, false, isId(id) ? id : '');
  };
  const version = seen['jsonrpc'];
  if (!version || bytes.toString('latin1', version.start, version.end) !== '"2.0"')
    fail('`jsonrpc` must be "2.0"');
  const { method: methodSpan, params, result, error } = seen;
  if (methodSpan) {
    if (result || error) fail('A message has a `method` or a `result` or an `error`, not several');
    if (bytes[methodSpan.start] !== 0x22) fail('`method` must be a string');
    const opener = params && bytes[params.start];
    if (params && opener !== 0x7b && opener !== 0x5b) fail('`params` must be an object or an array');
    if (idSpan && !isId(id)) fail('`id` must be a string or a number');
    const method = stringAt(bytes, methodSpan.start, methodSpan.end);
    return { bytes, kind: idSpan ? 'request' : 'notification', method, id, idSpan, params, body: undefined };
  }
  if (!result === !error) fail('A message has one of `method`, `result` and `error`');
  if (!idSpan && result) fail('A result has an `id`');
  if (idSpan && id !== 'null' && !isId(id)) fail('`id` must be a string or a number');
  if (error && bytes[error.start] !== 0x7b) fail('`error` must be an object');
  return {
    bytes,
    kind: error ? 'error' : 'result',
    method: '',
    id,
    idSpan,
    params: undefined,
    body: result ?? error,
  };
}

/** A string or a number; MCP forbids null. */
function isId(raw: string): boolean {
  return raw.startsWith('"') || /^[-\d]/.test(raw);
}

/** The edit that gives a request or response another id. `id` is JSON text. */
export function idEdit(message: Message, id: string): Edit {
  const span = message.idSpan;
  return span ? { ...span, text: id } : { start: 1, end: 1, text: `"id":${id},` };
}

/** The bytes of a request or response with another id. `id` is JSON text. */
export function withId(message: Message, id: string): Buffer {
  const { bytes, idSpan } = message;
  if (!idSpan) return splice(bytes, [idEdit(message, id)]);
  const { start, end } = idSpan;
  const copy = Buffer.allocUnsafe(bytes.length - (end - start) + Buffer.byteLength(id));
  bytes.copy(copy, 0, 0, start);
  bytes.copy(copy, start + copy.write(id, start), end);
  return copy;
}

/** One key for every spelling of the same id: `"a"` and `"\u0061"` are one, `1` and `"1"` are two. */
export function idKey(raw: string): string {
  return raw.includes('\\') ? JSON.stringify(JSON.parse(raw)) : raw;
}
