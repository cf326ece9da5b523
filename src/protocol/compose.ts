import { type Message, readMessage } from '../wire/message.js';

/** Messages of the gateway's own. `id` is JSON text; `params` and `result` are serialised here. */
export function request(id: string, method: string, params?: unknown): Message {
  const tail = params === undefined ? '' : `,"params":${JSON.stringify(params)}`;
  return written(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}${tail}}`);
}

export function notification(method: string, params?: unknown): Message {
  const tail = params === undefined ? '' : `,"params":${JSON.stringify(params)}`;
  return written(`{"jsonrpc":"2.0","method":${JSON.stringify(method)}${tail}}`);
}

export function result(id: string, value: unknown): Message {
  return written(`{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(value)}}`);
}

/** `id` `null` where the request's own could not be read. */
export function error(id: string, code: number, message: string, data?: unknown): Message {
  const body = JSON.stringify({ code, message, ...(data === undefined ? {} : { data }) });
  return written(`{"jsonrpc":"2.0","id":${id || 'null'},"error":${body}}`);
}

function written(text: string): Message {
  return readMessage(Buffer.from(text));
}
