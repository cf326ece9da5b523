/**
 * Event streams, outgoing. Fields end in LF; every event names its type, because some clients see no event without.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */

const LF = 0x0a;
const CR = 0x0d;
const DATA = Buffer.from('data: ');
const NEXT_LINE = Buffer.from('\ndata: ');
const END = Buffer.from('\n\n');

/** A line that every reader skips; it shows each side, and what is between them, that the stream lives. */
export const KEEP_ALIVE_COMMENT = Buffer.from(': keep-alive\n\n');

/** One event that carries a JSON-RPC message. `id` must hold no line break. */
export function messageEvent(message: Buffer, id?: string): Buffer {
  const head = id === undefined ? 'event: message\n' : `event: message\nid: ${id}\n`;
  return Buffer.concat([Buffer.from(head), DATA, ...dataLines(message), END]);
}

/** One event of another type. Neither argument may hold a line break. */
export function namedEvent(type: string, data: string): Buffer {
  return Buffer.from(`event: ${type}\ndata: ${data}\n\n`);
}

/**
 * An event with nothing but an id: a place to resume from before the first message is there, and how long to wait
 * before that, in milliseconds.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#sending-messages-to-the-server
 */
export function primingEvent(id: string, retryMs: number): Buffer {
  return Buffer.from(`retry: ${retryMs}\nid: ${id}\ndata: \n\n`);
}

/** A line break in a JSON text is white space, so each may begin a new `data:` line. */
function dataLines(data: Buffer): Buffer[] {
  if (data.indexOf(LF) < 0 && data.indexOf(CR) < 0) return [data];
  const parts: Buffer[] = [];
  let start = 0;
  for (let i = 0; i < data.length; i++) {
    const byte = data[i];
    if (byte !== LF && byte !== CR) continue;
    parts.push(data.subarray(start, i), NEXT_LINE);
    if (byte === CR && data[i + 1] === LF) i++;
    start = i + 1;
  }
  parts.push(data.subarray(start));
  return parts;
}
