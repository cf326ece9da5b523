import { GatewayError } from '../base/errors.js';
import { concealed } from '../base/secrets.js';
import { CLIENT_CAPABILITIES_META, CLIENT_INFO_META, PROTOCOL_VERSION_META } from '../protocol/meta.js';
import { LATEST_MODERN_REVISION } from '../protocol/revisions.js';
import { JsonError } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import { type EraVerdict, verdictOf } from './era-verdict.js';
import type { Greeting } from './greeting.js';
import { type Implementation, listsAnnounced, type ServerFacts } from './handshake.js';

/** The server does not speak the modern era; nothing ran. */
export class OtherEra extends GatewayError {
  /** What showed it, where that may have another meaning: an answer, or a refusal; undefined for a clear verdict. */
  readonly evidence: Message | GatewayError | undefined;
  /** What showed it, in words. */
  readonly why: string;

  constructor(serverId: string, why: string, evidence?: Message | GatewayError) {
    super('other_era', `Server "${serverId}" does not speak 2026-07-28: ${why}`, { serverId });
    this.evidence = evidence;
    this.why = why;
  }
}

/** JSON text of the `_meta` that a request of the gateway's own carries. */
export function ownMeta(us: Implementation): string {
  return JSON.stringify({
    [PROTOCOL_VERSION_META]: LATEST_MODERN_REVISION,
    [CLIENT_INFO_META]: us,
    [CLIENT_CAPABILITIES_META]: {},
  });
}

/**
 * `server/discover`. Rejects with OtherEra where the server shows that it is a legacy one.
 * https://modelcontextprotocol.io/specification/2026-07-28/server/discover
 */
export function modernGreeting(serverId: string, secrets: readonly string[], us: Implementation): Greeting {
  return {
    method: 'server/discover',
    async greet(link, ask) {
      const params = `{"_meta":${ownMeta(us)}}`;
      const discover = () => ask('server/discover', params).catch((failure: unknown) => failure);
      let outcome = await discover();
      let verdict = verdictOf(outcome, link.kind);
      if (verdict.kind === 'again') {
        outcome = await discover();
        verdict = verdictOf(outcome, link.kind);
      }
      return factsOf(serverId, outcome, verdict, secrets);
    },
  };
}

function factsOf(
  serverId: string,
  outcome: unknown,
  verdict: EraVerdict,
  secrets: readonly string[],
): ServerFacts {
  switch (verdict.kind) {
    case 'modern':
      return readDiscoverResult(serverId, outcome as Message);
    case 'legacy':
      throw new OtherEra(
        serverId,
        concealed(verdict.why, secrets),
        outcome instanceof GatewayError ? outcome : undefined,
      );
    case 'unusable':
      throw new GatewayError(
        'server_unavailable',
        `Server "${serverId}" ${concealed(verdict.why, secrets)}`,
        { serverId },
      );
    case 'again':
      throw new GatewayError(
        'server_unavailable',
        `Server "${serverId}" refuses the revision that it names`,
        {
          serverId,
        },
      );
    case 'unknown':
      throw outcome;
  }
}

function readDiscoverResult(serverId: string, answer: Message): ServerFacts {
  const body = answer.body;
  try {
    if (!body) throw new JsonError('no result', 0);
    return {
      answer,
      revision: LATEST_MODERN_REVISION,
      resultText: answer.bytes.toString('utf8', body.start, body.end),
      ...listsAnnounced(answer, body.start),
    };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const why = `Server "${serverId}" answered server/discover ambiguously: ${error.message}`;
    throw new GatewayError('server_protocol', why, { serverId });
  }
}
