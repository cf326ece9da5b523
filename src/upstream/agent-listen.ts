import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { Exchange } from '../pipeline/exchange.js';
import { SUBSCRIPTION_ID_META } from '../protocol/meta.js';
import type { ListKind } from '../protocol/methods.js';
import { splice } from '../wire/json.js';
import { memberEdits } from '../wire/members.js';
import { type Message, readMessage } from '../wire/message.js';
import { concerns, type Filter, filterText, NOTHING } from './filter.js';
import { Notices } from './notices.js';
import { paramOf, withText } from './rewrite.js';

/** One agent's `subscriptions/listen`, from its acknowledgement to its end. */
export class AgentListen {
  readonly wanted: Filter;
  readonly #exchange: Exchange;
  readonly #notices: Notices;
  #honoured: Filter = NOTHING;

  constructor(exchange: Exchange, wanted: Filter, clock: Clock) {
    this.#exchange = exchange;
    this.wanted = wanted;
    this.#notices = new Notices(clock);
  }

  get honoured(): Filter {
    return this.#honoured;
  }

  /** Acknowledges what is honoured; from here on the agent is told. Settles when the agent ends it: rejects then. */
  begin(honoured: Filter): Promise<never> {
    const { signal, serverId } = this.#exchange;
    const ended = new Promise<never>((_, reject) => {
      const end = () => reject(new GatewayError('cancelled', 'The subscription was ended', { serverId }));
      if (signal.aborted) end();
      else signal.addEventListener('abort', end, { once: true });
    });
    this.#honoured = honoured;
    this.#exchange.notify(acknowledgement(this.#exchange.message.id, honoured));
    return ended;
  }

  /** Tells of a changed list, if that was asked for. */
  changed(kind: ListKind, message: Message): void {
    if (this.#honoured.kinds.has(kind)) this.#notices.tell(kind, () => this.#tell(message));
  }

  /** Tells of a changed resource, if that was asked for. */
  updated(uri: string, message: Message): void {
    if (concerns(this.#honoured.uris, uri)) this.#tell(message);
  }

  end(): void {
    this.#notices.pause();
    this.#honoured = NOTHING;
  }

  #tell(message: Message): void {
    this.#exchange.notify(stamped(message, this.#exchange.message.id));
  }
}

/** A notification with the subscription's id in `_meta`; `id` is JSON text. Other bytes stay. */
export function stamped(message: Message, id: string): Message {
  const { bytes, params } = message;
  const meta = paramOf(message, '_meta');
  const span = meta && paramOf(message, '_meta', SUBSCRIPTION_ID_META);
  if (span) return withText(message, span, id);
  const stamp = { [SUBSCRIPTION_ID_META]: id };
  const isObject = meta && bytes[meta.start] === 0x7b;
  if (isObject) return readMessage(splice(bytes, memberEdits(bytes, meta.start, { set: stamp })));
  const whole = { _meta: `{${JSON.stringify(SUBSCRIPTION_ID_META)}:${id}}` };
  if (params) return readMessage(splice(bytes, memberEdits(bytes, params.start, { set: whole })));
  const all = { params: `{"_meta":${whole._meta}}` };
  return readMessage(splice(bytes, memberEdits(bytes, 0, { set: all })));
}

function acknowledgement(id: string, honoured: Filter): Message {
  const meta = `{${JSON.stringify(SUBSCRIPTION_ID_META)}:${id}}`;
  const params = `{"_meta":${meta},"notifications":${filterText(honoured)}}`;
  const head = '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":';
  return readMessage(Buffer.from(`${head}${params}}`));
}
