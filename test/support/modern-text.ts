/** What a request of 2026-07-28 says of itself. */
export interface Declaration {
  readonly revision?: unknown;
  readonly capabilities?: unknown;
  readonly clientInfo?: unknown;
  readonly logLevel?: unknown;
  readonly progressToken?: string | number;
  /** More members of `_meta`. */
  readonly more?: object;
}

const PREFIX = 'io.modelcontextprotocol/';

/** `_meta` with these members; `undefined` leaves one out. */
export function modernMeta(declaration: Declaration = {}): object {
  const { revision, capabilities, clientInfo, logLevel, progressToken, more } = {
    revision: '2026-07-28',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
    ...declaration,
  };
  return {
    [`${PREFIX}protocolVersion`]: revision,
    [`${PREFIX}clientInfo`]: clientInfo,
    [`${PREFIX}clientCapabilities`]: capabilities,
    [`${PREFIX}logLevel`]: logLevel,
    progressToken,
    ...more,
  };
}

/** One request of 2026-07-28; `id` is JSON text. */
export function modernText(
  method: string,
  id: string,
  params: object = {},
  declaration: Declaration = {},
): string {
  const all = JSON.stringify({ _meta: modernMeta(declaration), ...params });
  return `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${all}}`;
}

export function modernCall(name: string, id: string, declaration: Declaration = {}): string {
  return modernText('tools/call', id, { name, arguments: {} }, declaration);
}

/** A subscription to what `filter` names. */
export function listenText(id: string, filter: object): string {
  return modernText('subscriptions/listen', id, { notifications: filter });
}

/** JSON text of a DiscoverResult of a scripted server. */
export const DISCOVERED = JSON.stringify({
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    logging: {},
    completions: {},
  },
  ttlMs: 0,
  cacheScope: 'private',
});
