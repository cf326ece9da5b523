import { isUtf8 } from 'node:buffer';
import { JsonError, skipSpace, skipValue } from '../wire/json.js';

/** Text that is no JSON even with comments and trailing commas allowed. The message quotes nothing of the text. */
export class ConfigSyntaxError extends Error {
  override readonly name = 'ConfigSyntaxError';
  /** Both count from 1; columns are counted in characters, as editors do. */
  readonly line: number;
  readonly column: number;

  constructor(message: string, line: number, column: number) {
    super(message);
    this.line = line;
    this.column = column;
  }
}

const SPACE = 0x20;
const LF = 0x0a;
const CR = 0x0d;
const TAB = 0x09;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SLASH = 0x2f;
const STAR = 0x2a;
const COMMA = 0x2c;
const BOM_LENGTH = 3;
const CLOSERS = Buffer.from('}]');
/** What stands before a comma that ends no value. */
const NO_VALUE = Buffer.from('{[,:');

/**
 * JSON with comments, trailing commas and a byte order mark, made strict: what JSON does not know becomes spaces, so
 * that every byte stays where it was and offsets keep their meaning. Throws ConfigSyntaxError.
 */
export function strictJson(source: Buffer): Buffer {
  if (!isUtf8(source)) throw new ConfigSyntaxError('The file is not UTF-8 text', 1, 1);
  const bytes = Buffer.from(source);
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) bytes.fill(SPACE, 0, BOM_LENGTH);
  blank(bytes);
  checkJson(bytes, source);
  return bytes;
}

/** The error of the scanner, placed in the file that it was found in. */
export function placed(error: JsonError, source: Buffer): ConfigSyntaxError {
  const { line, column } = positionAt(source, error.at);
  return new ConfigSyntaxError(error.message.replace(/ at byte \d+$/, ''), line, column);
}

function checkJson(bytes: Buffer, source: Buffer): void {
  try {
    const start = skipSpace(bytes, 0);
    if (start === bytes.length) throw new JsonError('The file is empty', start);
    const end = skipSpace(bytes, skipValue(bytes, start));
    if (end !== bytes.length) throw new JsonError('Text after the end', end);
  } catch (error) {
    throw error instanceof JsonError ? placed(error, source) : error;
  }
}

/** Overwrites comments, and commas between a value and a closing bracket. One pass; strings are stepped over. */
function blank(bytes: Buffer): void {
  let comma = -1;
  let previous: number | undefined;
  let i = 0;
  while (i < bytes.length) {
    const c = bytes[i] as number;
    if (c === SLASH && (bytes[i + 1] === SLASH || bytes[i + 1] === STAR)) {
      i = blankComment(bytes, i);
      continue;
    }
    if (c === COMMA) comma = previous !== undefined && !NO_VALUE.includes(previous) ? i : -1;
    else if (CLOSERS.includes(c) && previous === COMMA && comma >= 0) bytes[comma] = SPACE;
    if (c !== SPACE && c !== LF && c !== CR && c !== TAB) previous = c;
    i = c === QUOTE ? stringEnd(bytes, i) : i + 1;
  }
}

function stringEnd(bytes: Buffer, at: number): number {
  let i = at + 1;
  while (i < bytes.length && bytes[i] !== QUOTE && bytes[i] !== LF) i += bytes[i] === BACKSLASH ? 2 : 1;
  return i + 1;
}

function blankComment(bytes: Buffer, at: number): number {
  const block = bytes[at + 1] === STAR;
  const close = block ? bytes.indexOf('*/', at + 2) : bytes.indexOf('\n', at);
  if (block && close < 0) {
    const { line, column } = positionAt(bytes, at);
    throw new ConfigSyntaxError('The comment is not closed', line, column);
  }
  const end = close < 0 ? bytes.length : close + (block ? 2 : 0);
  for (let i = at; i < end; i++) if (bytes[i] !== LF && bytes[i] !== CR) bytes[i] = SPACE;
  return end;
}

function positionAt(source: Buffer, at: number): { line: number; column: number } {
  const before = source.toString('utf8', 0, at).replace(/^\ufeff/, '');
  const lines = before.split('\n');
  return { line: lines.length, column: [...(lines.at(-1) ?? '')].length + 1 };
}
