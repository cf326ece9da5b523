export type Redirect =
  | { readonly kind: 'none' }
  | { readonly kind: 'follow'; readonly url: URL }
  /** `why` completes "Server x …". */
  | { readonly kind: 'refused'; readonly why: string };

/**
 * What a reply's status and Location ask for. Followed within the origin only, since the credential goes along, and
 * never where the verb or the body would change.
 * https://www.rfc-editor.org/rfc/rfc9110#name-redirection-3xx
 */
export function redirectOf(
  status: number,
  location: string | undefined,
  method: string,
  from: URL,
): Redirect {
  const keepsMethod = status === 307 || status === 308;
  if (!keepsMethod && status !== 301 && status !== 302 && status !== 303) return { kind: 'none' };
  if (!keepsMethod && (method !== 'GET' || status === 303))
    return { kind: 'refused', why: `answered a redirect (${status}) that a ${method} cannot follow` };
  const url =
    location !== undefined && URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  if (!url) return { kind: 'refused', why: `answered a redirect (${status}) without a usable Location` };
  if (url.origin !== from.origin) {
    const to = url.origin === 'null' ? url.protocol : url.origin;
    return { kind: 'refused', why: `redirects to another origin, ${to}; configure its URL there` };
  }
  return { kind: 'follow', url };
}
