import { readFileSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/base/clock.js';
import type { GatewayError } from '../../src/base/errors.js';
import type { GatewayEvent } from '../../src/pipeline/events.js';
import { notification, request } from '../../src/protocol/compose.js';
import { ChildRegistry } from '../../src/upstream/child.js';
import type { Link } from '../../src/upstream/link.js';
import { openStdio, type StdioOptions, type StdioServer } from '../../src/upstream/stdio.js';
import type { Message } from '../../src/wire/message.js';

export const CHILD = fileURLToPath(new URL('./stdio-child.mjs', import.meta.url));

/** Things that happened, in order, and a way to wait for the next one. */
export class Happenings<T> {
  readonly all: T[] = [];
  readonly #watchers = new Set<() => void>();

  add(thing: T): void {
    this.all.push(thing);
    for (const look of this.#watchers) look();
  }

  /** The first thing that fits, whether it came already or not. */
  first(fits: (thing: T) => boolean): Promise<T> {
    return new Promise((resolve) => {
      const look = (): void => {
        const found = this.all.find(fits);
        if (found === undefined) return;
        this.#watchers.delete(look);
        resolve(found);
      };
      this.#watchers.add(look);
      look();
    });
  }
}

export interface Peer {
  readonly link: Link;
  readonly children: ChildRegistry;
  readonly messages: Happenings<Message>;
  readonly closed: Happenings<GatewayError>;
  readonly events: Happenings<GatewayEvent>;
  /** Sends a request and waits for its answer, parsed. */
  call(id: number, method: string, params?: unknown): Promise<unknown>;
  ask(id: number, method: string, params?: unknown): Promise<void>;
  tell(method: string, params?: unknown): Promise<void>;
}

export interface PeerSetup {
  readonly target?: Partial<StdioServer['target']>;
  readonly options?: Partial<StdioOptions>;
  readonly onMessage?: (message: Message, link: Link) => void;
}

/** Opens a link to the scriptable child, which is started with `flags`; it is gone when the test ends. */
export async function openPeer(
  t: TestContext,
  flags: readonly string[],
  setup: PeerSetup = {},
): Promise<Peer> {
  const children = new ChildRegistry();
  t.after(() => children.killAllChildren());
  const messages = new Happenings<Message>();
  const closed = new Happenings<GatewayError>();
  const events = new Happenings<GatewayEvent>();
  const target = {
    command: process.execPath,
    args: [CHILD, ...flags],
    env: {},
    cwd: undefined,
    ...setup.target,
  };
  const link = await openStdio(
    { id: 'files', target },
    {
      message: (message) => {
        messages.add(message);
        setup.onMessage?.(message, link);
      },
      streamLost: () => {},
      closed: (error) => closed.add(error),
    },
    {
      maxLineBytes: 64 * 1024 * 1024,
      emit: (event) => events.add(event),
      clock: systemClock,
      env: process.env,
      children,
      closeGraceMs: 100,
      termGraceMs: 100,
      ...setup.options,
    },
  );
  t.after(() => link.close());
  const ask = (id: number, method: string, params?: unknown): Promise<void> =>
    link.send(request(String(id), method, params));
  return {
    link,
    children,
    messages,
    closed,
    events,
    ask,
    tell: (method, params) => link.send(notification(method, params)),
    call: async (id, method, params) => {
      await ask(id, method, params);
      return resultOf(await messages.first((message) => message.id === String(id)));
    },
  };
}

export function resultOf(message: Message): unknown {
  return (JSON.parse(message.bytes.toString()) as { result: unknown }).result;
}

/** True while the process runs; one that is dead and not buried yet does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Waits until no more pipes, processes and timers are open than `limit`; a leak never ends. */
export async function handlesBackTo(limit: number): Promise<void> {
  while (openHandles() > limit) await new Promise(setImmediate);
}

export function openHandles(): number {
  const kinds = new Set(['PipeWrap', 'ProcessWrap', 'Timeout']);
  return process.getActiveResourcesInfo().filter((kind) => kinds.has(kind)).length;
}
