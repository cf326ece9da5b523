/**
 * Media types by their essence: `Text/Event-Stream;charset=UTF-8` is `text/event-stream`. Parameters never matter here:
 * JSON and event streams are UTF-8 whatever they claim.
 * https://mimesniff.spec.whatwg.org/#mime-type-essence
 */

export const JSON_TYPE = 'application/json';
export const EVENT_STREAM_TYPE = 'text/event-stream';

/** Lower-case `type/subtype` of a Content-Type header; empty when there is none. */
export function essence(contentType: string | undefined): string {
  if (contentType === undefined) return '';
  const end = contentType.indexOf(';');
  return (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
}

/**
 * Whether an Accept header admits a media type, whose essence is `type`. An absent or empty header admits all; the most
 * specific range decides, and `q=0` refuses.
 * https://www.rfc-editor.org/rfc/rfc9110#name-accept
 */
export function accepts(acceptHeader: string | undefined, type: string): boolean {
  if (acceptHeader === undefined || acceptHeader.trim() === '') return true;
  const wanted = [type, `${type.slice(0, type.indexOf('/'))}/*`, '*/*'];
  let best = wanted.length;
  let admitted = false;
  for (const range of acceptHeader.split(',')) {
    const rank = wanted.indexOf(essence(range));
    if (rank < 0 || rank > best) continue;
    const open = !isRefused(range);
    admitted = rank === best ? admitted || open : open;
    best = rank;
  }
  return admitted;
}

/** True for a range of weight zero. */
function isRefused(range: string): boolean {
  return range
    .split(';')
    .slice(1)
    .some((parameter) => /^q=0(\.0{0,3})?$/i.test(parameter.trim()));
}
