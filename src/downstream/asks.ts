import { GatewayError } from '../base/errors.js';
import type { AskOptions } from '../pipeline/exchange.js';
import { notification } from '../protocol/compose.js';
import { member, splice } from '../wire/json.js';
import { idEdit, type Message, readMessage } from '../wire/message.js';
import type { Outlet } from './reply.js';

interface Ask {
  readonly outlet: Outlet;
  readonly resolve: (response: Message) => void;
  readonly reject: (error: GatewayError) => void;
  /** The server's own progress token, as it is spelled. */
  readonly token: string | undefined;
  readonly options: AskOptions;
  readonly onAbort: () => void;
}

/**
 * The requests that servers have made to one agent and that it has not answered yet. Each gets an id of the agent's
 * session, never used twice, because many servers' requests meet there; the id is its progress token as well.
 */
export class Asks {
  readonly #serverId: string;
  readonly #open = new Map<string, Ask>();
  #lastId = 0;

  constructor(serverId: string) {
    this.#serverId = serverId;
  }

  /** Settles as `Channel.ask` says. */
  ask(outlet: Outlet, message: Message, options: AskOptions): Promise<Message> {
    if (options.signal.aborted) return Promise.reject(this.#error('cancelled', 'The request was withdrawn'));
    const id = String(++this.#lastId);
    const { bytes, token } = readdressed(message, id);
    return new Promise((resolve, reject) => {
      const onAbort = () => this.#withdraw(id);
      this.#open.set(id, { outlet, resolve, reject, token, options, onAbort });
      options.signal.addEventListener('abort', onAbort, { once: true });
      if (!outlet.send(bytes))
        this.#take(id)?.reject(this.#error('agent_unreachable', 'The agent is not there'));
    });
  }

  /** Takes an agent's response. One that nobody waits for is dropped. */
  settle(response: Message): void {
    this.#take(response.id)?.resolve(response);
  }

  /** Takes an agent's `notifications/progress`. One that names no open request is dropped. */
  progress(message: Message): void {
    const span = message.params && member(message.bytes, message.params.start, 'progressToken');
    if (!span) return;
    const ask = this.#open.get(message.bytes.toString('utf8', span.start, span.end));
    if (ask?.token === undefined) return;
    ask.options.onNotification(readMessage(splice(message.bytes, [{ ...span, text: ask.token }])));
  }

  /** The agent is gone: nothing will be answered any more. */
  close(): void {
    for (const id of [...this.#open.keys()])
      this.#take(id)?.reject(this.#error('agent_unreachable', 'The agent is gone'));
  }

  #withdraw(id: string): void {
    const ask = this.#take(id);
    if (!ask) return;
    ask.outlet.send(cancellation(ask.options.signal.reason, id));
    ask.reject(this.#error('cancelled', 'The request was withdrawn'));
  }

  #take(id: string): Ask | undefined {
    const ask = this.#open.get(id);
    this.#open.delete(id);
    ask?.options.signal.removeEventListener('abort', ask.onAbort);
    return ask;
  }

  #error(code: 'cancelled' | 'agent_unreachable', message: string): GatewayError {
    return new GatewayError(code, message, { serverId: this.#serverId });
  }
}

/** A server's request under another id; its progress token, if it has one, becomes that id too. */
function readdressed(message: Message, id: string): { bytes: Buffer; token: string | undefined } {
  const { bytes, params } = message;
  const span = params && member(bytes, params.start, '_meta', 'progressToken');
  const edits = [idEdit(message, id)];
  if (span) edits.push({ ...span, text: id });
  return { bytes: splice(bytes, edits), token: span && bytes.toString('utf8', span.start, span.end) };
}

/** The server's own withdrawal with the id that the agent knows, or one of ours where the server sent none. */
function cancellation(reason: unknown, id: string): Buffer {
  const message = isMessage(reason) ? reason : undefined;
  const span = message?.params && member(message.bytes, message.params.start, 'requestId');
  if (!message || !span) return notification('notifications/cancelled', { requestId: Number(id) }).bytes;
  return splice(message.bytes, [{ ...span, text: id }]);
}

function isMessage(value: unknown): value is Message {
  return typeof value === 'object' && value !== null && Buffer.isBuffer((value as Partial<Message>).bytes);
}
