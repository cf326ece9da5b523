import * as z from 'zod';
import { DEFAULT_TOOLLIST_TTL_MS, MAX_TTL_MS } from '../protocol/hints.js';
import type { EraChoice, GatewayConfig, Isolation } from './types.js';

/**
 * Every default and every limit of the configuration, written once: the README's table, `.env.example` and the
 * environment variables are derived from here. Sizes are bytes, durations milliseconds.
 */

/** The general settings: what a configuration holds besides its servers. */
export type Settings = Omit<GatewayConfig, 'servers' | 'disabled'>;

const KIB = 1024;
const MIB = 1024 * KIB;
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
/** The longest delay that a timer can wait; a longer one fires at once. */
export const MAX_DELAY_MS = 2 ** 31 - 1;

export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;
export const ISOLATIONS: readonly Isolation[] = ['auto', 'token', 'principal', 'session'];
export const ERAS: readonly EraChoice[] = ['auto', 'legacy', 'modern'];

const NUMBER_TEXT = /^[+-]?\d{1,20}$/;

/** A number, or the text of one: that is all an environment variable can hold. */
function whole(minimum: number, maximum: number) {
  const error = `must be a whole number from ${minimum} to ${maximum}`;
  return z.preprocess(
    (value) => (typeof value === 'string' && NUMBER_TEXT.test(value.trim()) ? Number(value) : value),
    z.int({ error }).min(minimum, { error }).max(maximum, { error }),
  );
}

const delay = () => whole(1, MAX_DELAY_MS);
const size = (minimum: number) => whole(minimum, Number.MAX_SAFE_INTEGER);
/** A negative TTL is taken as 0: nothing is kept. */
const ttl = () => whole(-MAX_DELAY_MS, MAX_DELAY_MS).transform((ms) => Math.max(0, ms));

function flag() {
  const error = 'must be true or false';
  const words = new Map<unknown, boolean>([
    ['true', true],
    ['false', false],
  ]);
  return z.preprocess(
    (value) => words.get(typeof value === 'string' ? value.trim().toLowerCase() : value) ?? value,
    z.boolean({ error }),
  );
}

function choice<const T extends string>(names: readonly T[]) {
  return z.preprocess(
    (value) => (typeof value === 'string' ? value.trim().toLowerCase() : value),
    z.enum(names, { error: `must be one of ${names.join(', ')}` }),
  );
}

function text() {
  return z.string({ error: 'must be a text' }).refine((value) => !/\p{Cc}/u.test(value), {
    error: 'must not hold control characters',
  });
}

function filled() {
  return text().trim().min(1, { error: 'must not be empty' });
}

/** A list, or the text of one with commas between its items. */
function list() {
  return z.preprocess(
    (value) => (typeof value === 'string' ? value.split(',').filter((item) => item.trim()) : value),
    z.array(filled(), { error: 'must be a list of texts' }),
  );
}

/** IPv6 addresses are often written as they stand in a URL. */
const host = () => filled().transform((name) => name.replace(/^\[(.*)\]$/, '$1'));

function knob<T extends z.ZodType>(schema: T, fallback: z.output<T>, description: string) {
  return schema.default(fallback as never).meta({ description });
}

export const settingsSchema = z.object({
  host: knob(host(), '127.0.0.1', 'Address to listen on.'),
  port: knob(whole(0, 65_535), 8808, 'Port to listen on; 0 takes a free one.'),
  logLevel: knob(choice(LOG_LEVELS), 'info', `One of ${LOG_LEVELS.join(', ')}.`),
  allowedHosts: knob(list(), [], 'Names accepted in `Host` besides those of the address listened on.'),
  allowedOrigins: knob(list(), [], 'Origins of web pages that may call the gateway.'),
  toolListTtlMs: knob(
    ttl(),
    DEFAULT_TOOLLIST_TTL_MS,
    'How long a list is kept whose server says nothing; 0 keeps none. Read anew at each listing.',
  ),
  maxTtlMs: knob(ttl(), MAX_TTL_MS, 'Longest time that any list is kept, whatever its server says.'),
  hints: knob(
    choice(['modern', 'always'] as const),
    'modern',
    'Who is told `ttlMs` and `cacheScope`: agents of 2026-07-28 (`modern`), or all (`always`).',
  ),
  cacheMaxBytes: knob(size(1), 64 * MIB, 'Size of all cached lists together.'),
  cacheMaxEntries: knob(whole(1, 1_000_000), 10_000, 'Number of cached lists.'),
  maxConnections: knob(whole(1, 1_000_000), 256, 'Open connections to servers, all together.'),
  connectionIdleMs: knob(delay(), 5 * MINUTE, 'An unused connection to a server is closed after this.'),
  maxSessions: knob(whole(1, 10_000_000), 10_000, 'Sessions of agents at one time.'),
  sessionIdleMs: knob(delay(), 30 * MINUTE, 'A session without request or open stream ends after this.'),
  keepAliveMs: knob(delay(), 15 * SECOND, 'Time between two comments on a silent event stream.'),
  resumeMs: knob(
    whole(0, MAX_DELAY_MS),
    MINUTE,
    'How long a dropped stream can be resumed and its request keeps running.',
  ),
  replayMaxBytes: knob(size(0), MIB, 'Events kept of one session, for resumption.'),
  parkMs: knob(delay(), 5 * MINUTE, 'How long a call is held for an agent that was asked for input.'),
  maxParkedCalls: knob(whole(1, 1_000_000), 1_000, 'Calls held for their agents at one time.'),
  maxRequestBytes: knob(size(1), 16 * MIB, 'Largest request of an agent.'),
  maxAnswerBytes: knob(size(1), 128 * MIB, 'Largest single message of a server.'),
  shutdownMs: knob(whole(0, MAX_DELAY_MS), 10 * SECOND, 'Time to finish from SIGTERM to exit.'),
}) satisfies z.ZodType<Settings>;

/** Names that other tools give to the transports, and ours for them. */
const TRANSPORTS: ReadonlyMap<string, 'stdio' | 'http' | 'sse' | 'auto'> = new Map([
  ['stdio', 'stdio'],
  ['auto', 'auto'],
  ...['http', 'streamable-http', 'streamablehttp', 'streamable_http', 'http-stream'].map(
    (name) => [name, 'http'] as const,
  ),
  ...['sse', 'http+sse'].map((name) => [name, 'sse'] as const),
]);

function transport() {
  const error = 'must be stdio, http (streamable-http, http-stream), sse (http+sse) or auto';
  return z.preprocess(
    (value) => (typeof value === 'string' ? TRANSPORTS.get(value.trim().toLowerCase()) : (value ?? null)),
    z.enum(['stdio', 'http', 'sse', 'auto'], { error }),
  );
}

/** Arguments and variables are texts; a number or truth value written without quotes is taken as one. */
function word() {
  return z.preprocess(
    (value) => (typeof value === 'number' || typeof value === 'boolean' ? String(value) : value),
    z.string({ error: 'must be a text' }).refine((value) => !value.includes('\0'), {
      error: 'must not hold a NUL character',
    }),
  );
}

const words = () => z.record(z.string(), word(), { error: 'must be an object of name to text' });

/** One entry below `mcpServers`: the shape of each member alone. How they fit together: `entry.ts`. */
export const entrySchema = z.object({
  type: transport().optional(),
  transport: transport().optional(),
  command: filled().optional(),
  args: z.array(word(), { error: 'must be a list of texts' }).optional(),
  env: words().optional(),
  cwd: filled().optional(),
  url: filled().optional(),
  serverUrl: filled().optional(),
  httpUrl: filled().optional(),
  headers: words().optional(),
  forwardAuthorization: flag().optional(),
  disabled: flag().optional(),
  enabled: flag().optional(),
  isolate: choice(ISOLATIONS).default('auto'),
  era: choice(ERAS).default('auto'),
  toolListTtlMs: ttl().optional(),
  sharePublic: flag().optional(),
  connectTimeoutMs: delay().default(30 * SECOND),
  requestTimeoutMs: delay().default(5 * MINUTE),
  maxRequestTimeoutMs: delay().optional(),
  maxConnections: whole(1, 1_000_000).default(64),
});
export type Entry = z.output<typeof entrySchema>;

/** Where a server sets no limit of its own and its `requestTimeoutMs` is not above this. */
export const MAX_REQUEST_TIMEOUT_MS = 60 * MINUTE;

export type SettingKey = keyof Settings;

export function settingKeys(): SettingKey[] {
  return Object.keys(settingsSchema.shape) as SettingKey[];
}
