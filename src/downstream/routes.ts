/** What a path means to the listener. */
export type Route =
  | { readonly kind: 'mcp' | 'sse' | 'messages'; readonly serverId: string; readonly prefix: string }
  /** A path of ours that names no configured server. */
  | { readonly kind: 'unknown_server'; readonly serverId: string }
  /** `/mcp` or its like without a server in it, while it could mean several, or none. */
  | { readonly kind: 'ambiguous' }
  | { readonly kind: 'none' };

export interface Target {
  readonly path: string;
  readonly query: URLSearchParams;
}

const SHORT = /^\/(mcp|sse|messages)$/;
const FULL = /^\/servers\/([^/]+)\/(mcp|sse|messages)$/;
const NO_QUERY = new URLSearchParams();
const NONE: Route = { kind: 'none' };

/** Splits a request target; of an absolute one (`GET http://host/path`) the authority is left out. */
export function parseTarget(url: string): Target {
  const local = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*/i, '');
  const mark = local.indexOf('?');
  if (mark < 0) return { path: local, query: NO_QUERY };
  return { path: local.slice(0, mark), query: new URLSearchParams(local.slice(mark + 1)) };
}

/** Finds the endpoint of a path. `serverIds` are the ids that have one. Never throws. */
export function routeOf(path: string, serverIds: readonly string[]): Route {
  const short = SHORT.exec(path);
  if (short) {
    const only = serverIds.length === 1 ? serverIds[0] : undefined;
    if (only === undefined) return { kind: 'ambiguous' };
    return { kind: short[1] as 'mcp', serverId: only, prefix: '' };
  }
  const full = FULL.exec(path);
  const serverId = full ? decode(full[1] as string) : undefined;
  if (!full || serverId === undefined) return NONE;
  if (!serverIds.includes(serverId)) return { kind: 'unknown_server', serverId };
  return { kind: full[2] as 'mcp', serverId, prefix: prefixOf(serverId) };
}

/** Path below which a server's endpoints lie. */
export function prefixOf(serverId: string): string {
  return `/servers/${encodeURIComponent(serverId)}`;
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
