import { type DestinationStream, type LevelWithSilent, type Logger, pino } from 'pino';
import { type Clock, systemClock } from '../base/clock.js';
import type { GatewayEvent } from '../pipeline/events.js';
import { eventLine } from './event-line.js';
import { LogOutput } from './log-output.js';
import { maskSecrets } from './mask.js';

export type { Logger };

export interface LogOptions {
  readonly level: LevelWithSilent;
  /** stderr where absent: stdout belongs to answers, and in stdio mode to the protocol. */
  readonly output?: DestinationStream;
  readonly clock?: Clock;
}

const SECRET_NAMES = ['authorization', 'Authorization', 'token', 'cookie', 'Cookie', 'password', 'secret'];
const SECRET_PATHS = ['headers.*', 'env.*', ...SECRET_NAMES];

/** A logger of one JSON object a line: `level`, `time` (ISO 8601), the fields, `msg`. Credentials are masked. */
export function createLogger(options: LogOptions): Logger {
  const { level, output = new LogOutput(), clock = systemClock } = options;
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date(clock.now()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: [...SECRET_PATHS, ...SECRET_PATHS.map((path) => `*.${path}`)], censor: '[redacted]' },
      hooks: { streamWrite: maskSecrets },
    },
    output,
  );
}

/** Writes one event to the log. Never throws. */
export function logEvent(logger: Logger, event: GatewayEvent): void {
  const { level, message, fields } = eventLine(event);
  if (logger.isLevelEnabled(level)) logger[level](fields, message);
}
