import type { Path, Problem } from './problems.js';

/** Header field names as HTTP defines them. https://www.rfc-editor.org/rfc/rfc9110#name-field-names */
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** What the gateway writes itself on each message; a configured one would contradict it. */
const OWN = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'keep-alive',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export interface CheckedHeaders {
  readonly headers: Readonly<Record<string, string>>;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/** Headers that can be sent as they are. Neither problems nor warnings hold a value. */
export function checkHeaders(given: Readonly<Record<string, string>>, at: Path): CheckedHeaders {
  const kept: [string, string][] = [];
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const seen = new Set<string>();
  for (const [name, value] of Object.entries(given)) {
    const path = [...at, name];
    const key = name.toLowerCase();
    if (OWN.has(key)) warnings.push({ path, message: 'is left out: the gateway sets this header itself' });
    else if (!FIELD_NAME.test(name)) problems.push({ path, message: 'is not a header name' });
    else if (!FIELD_VALUE.test(value)) problems.push({ path, message: 'holds what no header can carry' });
    else if (seen.has(key)) problems.push({ path, message: 'is given twice' });
    else kept.push([name, value.trim()]);
    seen.add(key);
  }
  return { headers: Object.fromEntries(kept), problems, warnings };
}

/** True when the header of that name is among them, however it is spelled. */
export function hasHeader(headers: Readonly<Record<string, string>>, name: string): boolean {
  return Object.keys(headers).some((key) => key.toLowerCase() === name);
}
