import { GatewayError } from '../base/errors.js';
import { idKey, type Message, readMessage, withId } from '../wire/message.js';
import { plainBody, readStart } from './body.js';
import type { Reply } from './http-call.js';
import { headerOf } from './http-headers.js';
import type { RemotePeer } from './peer.js';
import { classifyRefusal, retryAfterMs, snippetOf } from './refusal.js';

const MAX_REFUSAL_BYTES = 1024 * 1024;

/**
 * What a reply outside 200–299 comes to: the server's own JSON-RPC error, or a GatewayError `session_lost`,
 * `unauthorized` (with the status and the challenge) or `server_unavailable` (with the status). Frees the body.
 */
export async function readRefusal(
  peer: RemotePeer,
  reply: Reply,
  hadSession: boolean,
): Promise<Message | GatewayError> {
  const { status, headers } = reply;
  const body = await readStart(plainBody(peer, reply), MAX_REFUSAL_BYTES);
  const refusal = classifyRefusal(status, hadSession, body);
  switch (refusal.kind) {
    case 'answer':
      return refusal.message;
    case 'session_lost':
      return peer.error('session_lost', `no longer knows the session (${status})`, { status });
    case 'unauthorized': {
      const challenge = headerOf(headers, 'www-authenticate');
      const brought = Object.keys(peer.standing.headers).some(
        (name) => name.toLowerCase() === 'authorization',
      );
      const credential = brought ? 'refused the credential (401)' : 'asks for a credential (401)';
      const what = status === 401 ? credential : 'refused access (403)';
      return peer.error('unauthorized', what, { status, ...(challenge === undefined ? {} : { challenge }) });
    }
    case 'unavailable':
      return unavailable(peer, reply, body);
  }
}

function unavailable(peer: RemotePeer, reply: Reply, body: Buffer): GatewayError {
  const { status, headers } = reply;
  const wait = retryAfterMs(headerOf(headers, 'retry-after'), peer.clock.now());
  const text = snippetOf(body, peer.standing.secrets);
  return peer.error('server_unavailable', `answered ${status}${text && `: ${text}`}`, {
    status,
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
  });
}

/** A server's JSON-RPC error that came with a status of refusal. */
export interface RefusedAnswer extends Message {
  readonly refusedWith: number;
}

export function isRefused(answer: Message): answer is RefusedAnswer {
  return 'refusedWith' in answer;
}

/** A server's error for a request that it may not have read well enough to know the id: given the request's. */
export function asAnswerTo(request: Message, answer: Message): Message {
  if (answer.id !== '' && idKey(answer.id) === idKey(request.id)) return answer;
  return readMessage(withId(answer, request.id));
}

/** The error for a refused message that is no request, so that no answer of the server's can be handed on. */
export function refusedMessage(
  peer: RemotePeer,
  status: number,
  refusal: Message | GatewayError,
): GatewayError {
  if (refusal instanceof GatewayError) return refusal;
  const text = snippetOf(refusal.bytes, peer.standing.secrets);
  return peer.error('server_unavailable', `refused a message (${status}): ${text}`, { status });
}
