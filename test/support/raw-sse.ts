/** Event streams written by hand, in every way that the standard allows and some that it does not. */

export interface RawEvent {
  /** Left out where undefined. */
  readonly event?: string;
  readonly id?: string;
  readonly retry?: string;
  /** Each item becomes a `data:` line. */
  readonly data?: string | readonly string[];
  /** `data` before `event` and `id`. */
  readonly dataFirst?: boolean;
}

export type LineEnd = '\n' | '\r' | '\r\n';

/** The lines of one block and its closing blank line, joined by `end`, or by several in turn. */
export function rawEvent(event: RawEvent, end: LineEnd | readonly LineEnd[] = '\n'): string {
  const ends = typeof end === 'string' ? [end] : end;
  const data = event.data === undefined ? [] : [event.data].flat().map((line) => `data: ${line}`);
  const names = [
    ...(event.event === undefined ? [] : [`event: ${event.event}`]),
    ...(event.id === undefined ? [] : [`id: ${event.id}`]),
    ...(event.retry === undefined ? [] : [`retry: ${event.retry}`]),
  ];
  const lines = event.dataFirst ? [...data, ...names, ''] : [...names, ...data, ''];
  return lines.map((line, i) => line + ends[i % ends.length]).join('');
}

/** A message as one event. */
export function messageEvent(message: object, id?: string): string {
  return rawEvent({ event: 'message', data: JSON.stringify(message), ...(id === undefined ? {} : { id }) });
}

/** Cut into single bytes. */
export function bytesOf(text: string): Buffer[] {
  return [...Buffer.from(text)].map((byte) => Buffer.from([byte]));
}
