import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '../base/errors.js';

/** Headers that the gateway or HTTP itself decides on; a configured one of these names is left out. */
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

export interface StandingHeaders {
  /** Sent with every request to the server, whatever its verb. */
  readonly headers: Readonly<Record<string, string>>;
  /** Values that must appear in no message. */
  readonly secrets: readonly string[];
}

/**
 * The operator's headers and the one credential: `token` if there is one, else a configured Authorization header, else
 * the URL's user name and password. Throws GatewayError `unauthorized` for a token that no header can carry.
 */
export function standingHeaders(
  serverId: string,
  configured: Readonly<Record<string, string>>,
  token: string | undefined,
  url: URL,
): StandingHeaders {
  const headers: Record<string, string> = { 'user-agent': 'sidegate', 'accept-encoding': 'identity' };
  const secrets = new Set<string>();
  if (url.username || url.password) {
    const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    headers['authorization'] = `Basic ${Buffer.from(pair).toString('base64')}`;
    secrets.add(headers['authorization'].slice('Basic '.length)).add(decodeURIComponent(url.password));
  }
  for (const [name, value] of Object.entries(configured)) {
    if (OWN.has(name.toLowerCase())) continue;
    headers[name.toLowerCase()] = value;
    secrets.add(value).add(value.replace(/^\S+ /, ''));
  }
  if (token !== undefined) {
    if (!isVisibleAscii(token))
      throw new GatewayError(
        'unauthorized',
        `The credential for server "${serverId}" holds characters no header can carry`,
        {
          serverId,
        },
      );
    headers['authorization'] = `Bearer ${token}`;
    secrets.add(token);
  }
  return { headers, secrets: [...secrets].filter((secret) => secret.length > 3) };
}

/** Whether a value consists of 0x21–0x7E only, as a session id must. */
export function isVisibleAscii(value: string): boolean {
  return /^[\x21-\x7e]+$/.test(value);
}

/** An event id that can be given back in a header: longer ones and those with other characters cannot be resumed from. */
export function isHeaderSafeEventId(id: string): boolean {
  return id.length <= 4096 && /^[\x20-\x7e]+$/.test(id) && id.trim() === id;
}

/** A header's value, several of the same name joined as HTTP does. */
export function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}
