import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { messageOf } from '../base/errors.js';

/** The listener could not be bound. The message is one line for the operator. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
  /** The system's own code, such as `EADDRINUSE`. */
  readonly code: string;

  constructor(message: string, code: string, cause: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens there',
  EACCES: 'the system forbids this port to this user',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'the host name is unknown',
};

/** Binds a server; port 0 takes a free one. Answers with the port. Rejects with ListenError. */
export function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      const code = error.code ?? 'unknown';
      const why = REASONS[code] ?? messageOf(error);
      reject(new ListenError(`Cannot listen on ${hostInUrl(host)}:${port}: ${why}`, code, error));
    };
    server.once('error', failed);
    server.listen({ host, port }, () => {
      server.off('error', failed);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** A host as it stands in a URL: an IPv6 address in brackets. */
export function hostInUrl(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}
