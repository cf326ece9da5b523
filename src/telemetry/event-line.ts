import type { GatewayEvent } from '../pipeline/events.js';

/** One event as the log shows it. `fields` never hold what the event does not. */
export interface EventLine {
  readonly level: 'warn' | 'info' | 'debug';
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** What each event is worth to a reader of the log. What happens once a request is `debug`. */
export function eventLine(event: GatewayEvent): EventLine {
  const { type, ...fields } = event;
  const line = (level: EventLine['level'], message: string): EventLine => ({
    level,
    message,
    fields: { event: type, ...fields },
  });
  switch (event.type) {
    case 'server_connected':
      return line('info', `server ${event.serverId} is connected`);
    case 'server_connect_failed':
      return line('warn', event.message);
    case 'server_disconnected':
      return line(
        event.reason === 'lost' ? 'warn' : 'info',
        event.message || `a connection to server ${event.serverId} was ended: ${event.reason}`,
      );
    case 'server_stderr':
      return line('debug', `server ${event.serverId} wrote to stderr`);
    case 'server_noise':
      return line('warn', `server ${event.serverId} writes to stdout what is no message`);
    case 'message_dropped':
      return line('debug', `a message of server ${event.serverId} was dropped: ${event.why}`);
    case 'cache_outcome':
      return line('debug', `${event.method} of server ${event.serverId}: ${event.outcome}`);
    case 'cache_purged':
      return line('info', `lists of server ${event.serverId} were purged: ${event.reason}`);
    case 'session_opened':
      return line('debug', `a session with server ${event.serverId} began`);
    case 'session_closed':
      return line('debug', `a session with server ${event.serverId} ended`);
    case 'era_found':
      return line(
        'info',
        `server ${event.serverId} ${event.speaks ? 'speaks' : 'does not speak'} the ${event.era} era: ${event.why}`,
      );
    case 'call_parked':
      return line('debug', `a call to server ${event.serverId} waits for its agent's input`);
    case 'call_resumed':
      return line('debug', `a call to server ${event.serverId} goes on with its agent's input`);
    case 'call_expired':
      return line('info', `a call to server ${event.serverId} was given up: its agent brought no input`);
    case 'tool_excluded':
      return line('warn', `tool ${event.tool} of server ${event.serverId} is left out: ${event.why}`);
    case 'warning':
      return line('warn', event.message);
  }
}
