import type { ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.js';
import { unguessableId } from '../base/random.js';
import type { EventSink } from '../pipeline/events.js';
import type { Caller } from '../pipeline/exchange.js';
import type { Message } from '../wire/message.js';
import { AgentExchange } from './agent-exchange.js';
import type { Backend } from './backend.js';
import { HttpSession, type StreamContext } from './http-session.js';
import { PostReply } from './post-reply.js';
import { profileOf, welcome } from './profile.js';
import type { Reply } from './reply.js';
import { Session } from './session.js';
import type { Sessions } from './sessions.js';

export interface InitializeOptions {
  readonly backend: Backend;
  readonly sessions: Sessions;
  readonly context: StreamContext;
  readonly clock: Clock;
  readonly emit: EventSink;
}

export interface Initialize {
  readonly res: ServerResponse;
  readonly serverId: string;
  readonly caller: Caller;
  readonly message: Message;
  readonly json: boolean;
  readonly events: boolean;
}

/**
 * Begins a session over Streamable HTTP and answers its `initialize`. Where that fails, or nobody is there any more to
 * learn the session's id, no session remains. Rejects with GatewayError.
 */
export async function initialize(options: InitializeOptions, incoming: Initialize): Promise<void> {
  const { backend, sessions, context, emit } = options;
  const { res, serverId, caller, message, json, events } = incoming;
  const profile = profileOf(message);
  sessions.admit(serverId);
  const session = new Session(unguessableId(), serverId, profile, backend, emit);
  const arriving = new HttpSession(session, caller, context);
  sessions.add(arriving);
  const headers = { 'Mcp-Session-Id': session.id };
  const reply = new PostReply(arriving, res, { json, events, count: 1, batch: false, headers });
  await greet(session, message, caller, reply);
  if (session.revision === undefined || reply.lost) sessions.end(arriving);
}

/**
 * Takes `initialize` to the server; the session stands once it has a revision. Settles when it is answered or given up,
 * however long the server goes on. Never rejects.
 */
export async function greet(session: Session, message: Message, caller: Caller, reply: Reply): Promise<void> {
  const exchange = new AgentExchange(session, message, caller, false, reply);
  const givenUp = new Promise<void>((resolve) => {
    exchange.signal.addEventListener('abort', () => resolve(), { once: true });
  });
  const answered = session.run(exchange, (response) => {
    const { bytes, revision } = welcome(response, message.id, session.profile.revision, session.serverId);
    session.revision = revision;
    return bytes;
  });
  await Promise.race([answered, givenUp]);
}
