/**
 * Who may talk to the listener at all. A page in a browser can reach a local port: its `Origin` gives it away, or,
 * after a DNS rebinding, its `Host`.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#security-warning
 */

export interface GuardOptions {
  /** Address or name that the listener is bound to. */
  readonly host: string;
  /** `name` or `name:port` that a `Host` header may hold. */
  readonly allowedHosts: readonly string[];
  /** Origins as browsers spell them: `https://app.example`. */
  readonly allowedOrigins: readonly string[];
}

export type Verdict =
  | { readonly allowed: true; readonly corsOrigin: string | undefined }
  | { readonly allowed: false; readonly why: string };

export type Guard = (host: string | undefined, origin: string | undefined) => Verdict;

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|::1)$/;
const LOOPBACK_ORIGIN = /^https?:\/\/(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/;
const WITHOUT_ORIGIN: Verdict = { allowed: true, corsOrigin: undefined };

/** True for `localhost`, 127.0.0.0/8 and ::1, in brackets or not. */
export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host.toLowerCase());
}

/** The decision on one request's `Host` and `Origin` headers. */
export function createGuard(options: GuardOptions): Guard {
  const hosts = new Set(options.allowedHosts.map((host) => host.toLowerCase()));
  const origins = new Set(options.allowedOrigins.map((origin) => origin.toLowerCase().replace(/\/$/, '')));
  const local = isLoopback(options.host);
  const checksHost = local || hosts.size > 0;
  return (host, origin) => {
    if (checksHost && !hostAllowed(host ?? '', hosts, local))
      return { allowed: false, why: 'This Host is not allowed; the setting `allowedHosts` adds others' };
    if (origin === undefined) return WITHOUT_ORIGIN;
    const spelled = origin.toLowerCase();
    if (!LOOPBACK_ORIGIN.test(spelled) && !origins.has(spelled))
      return { allowed: false, why: 'This Origin is not allowed; the setting `allowedOrigins` adds others' };
    return { allowed: true, corsOrigin: origin };
  };
}

function hostAllowed(host: string, allowed: ReadonlySet<string>, local: boolean): boolean {
  const whole = host.toLowerCase();
  const name = whole.replace(/:\d*$/, '');
  return (local && LOOPBACK.test(name)) || allowed.has(whole) || allowed.has(name);
}

/** What a browser is told about an allowed origin, and only about that one. Never with credentials. */
export function corsHeaders(origin: string): Record<string, string> {
  return {
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Expose-Headers': 'Mcp-Session-Id, WWW-Authenticate, Retry-After',
    Vary: 'Origin',
  };
}

const AGENT_HEADERS = [
  'Accept',
  'Authorization',
  'Cache-Control',
  'Content-Type',
  'Last-Event-ID',
  'Mcp-Method',
  'Mcp-Name',
  'Mcp-Protocol-Version',
  'Mcp-Session-Id',
];
const MIRRORED_PARAM = /^mcp-param-[a-z0-9-]+$/i;

/** What a browser asks before it sends a request with headers of its own. */
export function preflightHeaders(methods: string, asked = ''): Record<string, string> {
  const names = asked.split(',').map((name) => name.trim());
  return {
    'Access-Control-Allow-Methods': methods,
    'Access-Control-Allow-Headers': [
      ...AGENT_HEADERS,
      ...names.filter((name) => MIRRORED_PARAM.test(name)),
    ].join(', '),
    'Access-Control-Max-Age': '600',
  };
}
