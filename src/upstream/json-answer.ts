import { GatewayError } from '../base/errors.js';
import { idKey, isBatch, type Message, readMessage } from '../wire/message.js';
import { plainBody, readAll } from './body.js';
import type { Reply } from './http-call.js';
import type { RemotePeer } from './peer.js';
import { asAnswerTo } from './refused.js';

/**
 * The response in a JSON body that answers one request. Rejects with `too_large`, with `outcome_unknown` when the body
 * breaks off, and with `server_protocol` when it holds anything but the request's own response.
 */
export async function readJsonAnswer(
  peer: RemotePeer,
  request: Message,
  reply: Reply,
  maxBytes: number,
): Promise<Message> {
  const body = await wholeBody(peer, reply, maxBytes);
  if (isBatch(body)) throw peer.error('server_protocol', 'answered with a batch of messages');
  const answer = messageIn(peer, body);
  if (answer.kind === 'error' && (answer.id === '' || answer.id === 'null'))
    return asAnswerTo(request, answer);
  const isResponse = answer.kind === 'result' || answer.kind === 'error';
  if (isResponse && idKey(answer.id) === idKey(request.id)) return answer;
  throw peer.error('server_protocol', 'answered something else than the request');
}

async function wholeBody(peer: RemotePeer, reply: Reply, maxBytes: number): Promise<Buffer> {
  try {
    return await readAll(peer, plainBody(peer, reply), maxBytes);
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    throw peer.error('outcome_unknown', 'broke off in the middle of its answer', { cause: error });
  }
}

function messageIn(peer: RemotePeer, body: Buffer): Message {
  try {
    return readMessage(body);
  } catch (error) {
    throw peer.error('server_protocol', 'answered with text that is no message', { cause: error });
  }
}
