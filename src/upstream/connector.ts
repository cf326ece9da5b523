import { isIP, type LookupFunction, connect as netConnect, type Socket } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import type { buildConnector } from 'undici';
import type { Clock } from '../base/clock.js';

/** Passes to undici as `connect`; `close` ends the attempts that are under way. */
export interface Connector {
  readonly connect: buildConnector.connector;
  close(): void;
}

/** What was known of a socket when it failed. */
const usedBefore = new WeakMap<Error, boolean>();

/**
 * True when the socket that failed with this error had carried bytes from the server before: it may have been idle, and
 * closed by the server while the request was on its way.
 */
export function failedOnUsedSocket(error: Error): boolean {
  const { socket } = error as { socket?: { bytesRead?: number } };
  return usedBefore.get(error) ?? (socket?.bytesRead ?? 0) > 0;
}

/**
 * Opens sockets to one origin. Both address families are tried, so that `localhost` finds a server on either; an
 * attempt, the TLS handshake included, ends after `timeoutMs`.
 */
export function originConnector(clock: Clock, timeoutMs: number): Connector {
  const opening = new Set<Socket>();
  let session: Buffer | undefined;
  const connect: buildConnector.connector = (target, callback) => {
    const socket = open(target, session);
    opening.add(socket);
    const deadline = clock.after(timeoutMs, () => {
      socket.destroy(new Error(`connection not established within ${timeoutMs} ms`));
    });
    let settle: buildConnector.Callback | undefined = callback;
    const settled = (...outcome: Parameters<buildConnector.Callback>) => {
      deadline.cancel();
      opening.delete(socket);
      const report = settle;
      settle = undefined;
      report?.(...outcome);
    };
    socket.on('session', (fresh: Buffer) => {
      session = fresh;
    });
    socket.once(target.protocol === 'https:' ? 'secureConnect' : 'connect', () => settled(null, socket));
    socket.once('close', () => settled(new Error('connection closed while it was being established'), null));
    socket.on('error', (error: Error) => {
      usedBefore.set(error, socket.bytesRead > 0);
      settled(error, null);
    });
  };
  const close = () => {
    for (const socket of opening) socket.destroy(new Error('the gateway closes'));
  };
  return { connect, close };
}

/**
 * Both loopback addresses, which systems know under `localhost` in part only.
 * https://www.rfc-editor.org/rfc/rfc6761#section-6.3
 */
const loopback: LookupFunction = (_host, options, callback) => {
  if (options.all)
    callback(null, [
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ]);
  else callback(null, '127.0.0.1', 4);
};

function open(target: buildConnector.Options, session: Buffer | undefined): Socket {
  const secure = target.protocol === 'https:';
  const host = target.hostname;
  const port = Number(target.port || (secure ? 443 : 80));
  const common = {
    host,
    port,
    autoSelectFamily: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 60_000,
    ...(host === 'localhost' ? { lookup: loopback } : {}),
  };
  if (!secure) return netConnect(common);
  const servername = target.servername || (isIP(host) ? undefined : host);
  return tlsConnect({
    ...common,
    ALPNProtocols: ['http/1.1'],
    ...(servername ? { servername } : {}),
    ...(session ? { session } : {}),
  });
}
