import { GatewayError } from '../base/errors.js';
import { concealed } from '../base/secrets.js';
import type { AgentProfile } from '../pipeline/exchange.js';
import { LATEST_LEGACY_REVISION } from '../protocol/revisions.js';
import { member } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import { stringInBody } from './rewrite.js';

/** A server answered `initialize` with an error of its own, which its agent gets as it is. */
export class InitializeRefused extends GatewayError {
  readonly answer: Message;

  constructor(serverId: string, answer: Message, secrets: readonly string[]) {
    const why = concealed(stringInBody(answer, 'message') ?? 'no reason given', secrets);
    super('server_unavailable', `Server "${serverId}" refused to initialize: ${why}`, { serverId });
    this.answer = answer;
  }
}

/** Who we say we are towards servers that several agents share. */
export interface Implementation {
  readonly name: string;
  readonly version: string;
}

/**
 * JSON text of the `params` of `initialize`. The agent's capabilities go as they are: a server must not be promised what
 * the agent lacks. `clientInfo` is the agent's own only where it has the connection to itself.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#initialization
 */
export function initializeParams(profile: AgentProfile, us: Implementation, alone: boolean): string {
  const clientInfo = alone && profile.clientInfo ? profile.clientInfo : JSON.stringify(us);
  return `{"protocolVersion":"${LATEST_LEGACY_REVISION}","capabilities":${profile.capabilities},"clientInfo":${clientInfo}}`;
}

/** What the gateway must know of an InitializeResult or a DiscoverResult. */
export interface ServerFacts {
  /** The server's own bytes; the id in them is ours. */
  readonly answer: Message;
  readonly revision: string;
  /** JSON text of `result`: tells whether a server that came back is the same. */
  readonly resultText: string;
  /** True where the server announced that it tells of changes of that list. */
  announces(list: 'tools' | 'prompts' | 'resources'): boolean;
}

/** Throws GatewayError where the answer is an error or no InitializeResult; `secrets` are left out of its message. */
export function readInitializeResult(
  serverId: string,
  answer: Message,
  secrets: readonly string[],
): ServerFacts {
  if (answer.kind === 'error') throw new InitializeRefused(serverId, answer, secrets);
  const revision = stringInBody(answer, 'protocolVersion');
  const body = answer.body;
  if (revision === undefined || !body) {
    throw new GatewayError(
      'server_protocol',
      `Server "${serverId}" answered initialize without a protocolVersion: it may be no MCP server`,
      { serverId },
    );
  }
  return {
    answer,
    revision,
    resultText: answer.bytes.toString('utf8', body.start, body.end),
    ...listsAnnounced(answer, body.start),
  };
}

/** Reads which changes a result's `capabilities` announce; `at` is the result's offset. */
export function listsAnnounced({ bytes }: Message, at: number): Pick<ServerFacts, 'announces'> {
  return {
    announces(list) {
      const span = member(bytes, at, 'capabilities', list, 'listChanged');
      return span !== undefined && bytes.toString('latin1', span.start, span.end) === 'true';
    },
  };
}
