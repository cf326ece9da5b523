import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernHttp,
} from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import * as z from 'zod';
import { PROMPT, WATCHED } from './offer.js';

/** Where an agent finds its server: a URL, or a command to start. */
export type Place = { readonly url: string } | { readonly command: readonly string[] };

export interface Called {
  readonly text: string;
}

/** What the matrix does with an agent of either era. */
export interface MatrixAgent {
  listTools(): Promise<string[]>;
  call(name: string, args?: object, options?: CallOptions): Promise<string>;
  /** Calls with a request for log messages; resolves to what was logged. */
  callAndLog(name: string): Promise<string[]>;
  /** Does what makes changes of the tools heard; resolves when they are. */
  watchTools(): Promise<void>;
  watchResource(): Promise<void>;
  /** Resolves when something of this kind was heard since the agent began. */
  heard(kind: 'tools' | 'resource'): Promise<void>;
  prompt(): Promise<string>;
  read(): Promise<string>;
  complete(): Promise<string[]>;
  /** Any request. */
  raw(method: string): Promise<unknown>;
  close(): Promise<void>;
}

export interface CallOptions {
  readonly onprogress?: (progress: number) => void;
  readonly signal?: AbortSignal;
}

const INFO = { name: 'matrix', version: '1' };
const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const ROOTS = { roots: [{ uri: 'file:///home/ada' }] };
const SAID = {
  role: 'assistant' as const,
  content: { type: 'text' as const, text: 'something' },
  model: 'm',
};
const ANYTHING = z.looseObject({});

/** What was heard, and who waits for it. */
class Ear {
  readonly #heard = new Set<string>();
  readonly #waiting = new Map<string, () => void>();

  hear(kind: string): void {
    this.#heard.add(kind);
    this.#waiting.get(kind)?.();
  }

  async heard(kind: string): Promise<void> {
    if (!this.#heard.has(kind)) await new Promise<void>((resolve) => this.#waiting.set(kind, resolve));
  }
}

function accepted(params: { mode?: string | undefined }) {
  return params.mode === 'url'
    ? { action: 'accept' as const }
    : { action: 'accept' as const, content: { name: 'Ada' } };
}

function firstText(content: unknown): string {
  const [block] = [content].flat() as { text?: string }[];
  return block?.text ?? '';
}

/** An agent of the `initialize` era, on the first line of the official SDK. */
export async function legacyAgent(place: Place): Promise<MatrixAgent> {
  const client = new LegacyClient(INFO, { capabilities: CAPABILITIES });
  const ear = new Ear();
  const logs: string[] = [];
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => accepted(params));
  client.setRequestHandler(CreateMessageRequestSchema, () => SAID);
  client.setRequestHandler(ListRootsRequestSchema, () => ROOTS);
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
    logs.push(`${params.level}: ${params.data}`);
  });
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => ear.hear('tools'));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, () => ear.hear('resource'));
  const [command = '', ...args] = 'command' in place ? place.command : [];
  const transport =
    'url' in place
      ? new LegacyHttp(new URL(place.url))
      : new LegacyStdio({ command, args, stderr: 'ignore' });
  await client.connect(transport as Parameters<LegacyClient['connect']>[0]);
  const call: MatrixAgent['call'] = async (name, given = {}, { onprogress, signal } = {}) => {
    const result = await client.callTool({ name, arguments: { ...given } }, undefined, {
      ...(onprogress ? { onprogress: ({ progress }) => onprogress(progress) } : {}),
      ...(signal ? { signal } : {}),
    });
    return firstText(result.content);
  };
  return {
    call,
    listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
    async callAndLog(name) {
      await client.setLoggingLevel('info');
      await call(name);
      return logs;
    },
    watchTools: async () => {},
    async watchResource() {
      await client.subscribeResource({ uri: WATCHED });
    },
    heard: (kind) => ear.heard(kind),
    prompt: async () => firstText((await client.getPrompt({ name: PROMPT })).messages[0]?.content),
    read: async () => firstText((await client.readResource({ uri: WATCHED })).contents),
    async complete() {
      const ref = { type: 'ref/prompt' as const, name: PROMPT };
      return (await client.complete({ ref, argument: { name: 'who', value: 'A' } })).completion.values;
    },
    raw: async (method) => client.request({ method } as never, ANYTHING as never),
    close: () => client.close(),
  };
}

/** An agent of 2026-07-28 alone, on the second line of the official SDK. */
export async function modernAgent(place: Place): Promise<MatrixAgent> {
  const client = new ModernClient(INFO, {
    capabilities: CAPABILITIES,
    versionNegotiation: { mode: { pin: '2026-07-28' } },
  });
  const ear = new Ear();
  const logs: string[] = [];
  client.setRequestHandler('elicitation/create', ({ params }) => accepted(params));
  client.setRequestHandler('sampling/createMessage', () => SAID);
  client.setRequestHandler('roots/list', () => ROOTS);
  client.setNotificationHandler('notifications/message', ({ params }) => {
    logs.push(`${params.level}: ${params.data}`);
  });
  client.setNotificationHandler('notifications/tools/list_changed', () => ear.hear('tools'));
  client.setNotificationHandler('notifications/resources/updated', () => ear.hear('resource'));
  const [command = '', ...args] = 'command' in place ? place.command : [];
  await client.connect(
    'url' in place
      ? new ModernHttp(new URL(place.url))
      : new ModernStdio({ command, args: [...args], stderr: 'ignore' }),
  );
  const call = async (
    name: string,
    given: object = {},
    { onprogress, signal }: CallOptions = {},
    meta: object = {},
  ) => {
    const result = await client.callTool(
      { name, arguments: { ...given }, _meta: { ...meta } },
      {
        ...(onprogress ? { onprogress: ({ progress }) => onprogress(progress) } : {}),
        ...(signal ? { signal } : {}),
      },
    );
    return firstText(result.content);
  };
  return {
    call,
    listTools: async () =>
      (await client.listTools(undefined, { cacheMode: 'bypass' })).tools.map(({ name }) => name),
    async callAndLog(name) {
      await call(name, {}, {}, { 'io.modelcontextprotocol/logLevel': 'info' });
      return logs;
    },
    async watchTools() {
      const { honoredFilter } = await client.listen({ toolsListChanged: true });
      if (!honoredFilter.toolsListChanged) throw new Error('Changes of tools are not told');
    },
    async watchResource() {
      const { honoredFilter } = await client.listen({ resourceSubscriptions: [WATCHED] });
      if (!honoredFilter.resourceSubscriptions?.includes(WATCHED)) throw new Error('Changes are not told');
    },
    heard: (kind) => ear.heard(kind),
    prompt: async () => firstText((await client.getPrompt({ name: PROMPT })).messages[0]?.content),
    read: async () => firstText((await client.readResource({ uri: WATCHED })).contents),
    async complete() {
      const ref = { type: 'ref/prompt' as const, name: PROMPT };
      return (await client.complete({ ref, argument: { name: 'who', value: 'A' } })).completion.values;
    },
    raw: async (method) => client.request({ method, params: {} } as never, ANYTHING as never),
    close: () => client.close(),
  };
}
