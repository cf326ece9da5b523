import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

/** A port to which a child process connects, so that its life can be watched from outside. */
export class Witness {
  readonly port: number;
  readonly #connected: Promise<Socket>;

  constructor(port: number, connected: Promise<Socket>) {
    this.port = port;
    this.#connected = connected;
  }

  /** Settles when the process has connected: it runs. */
  async arrived(): Promise<void> {
    await this.#connected;
  }

  /** Settles when the process has written something. */
  async spoke(): Promise<void> {
    await once(await this.#connected, 'data');
  }

  /** Settles when the process is gone. */
  async gone(): Promise<void> {
    const socket = await this.#connected;
    if (!socket.closed) await once(socket, 'close');
  }
}

export async function startWitness(t: TestContext): Promise<Witness> {
  const server = createServer();
  const connected = new Promise<Socket>((resolve) => server.once('connection', resolve));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const watched = connected.then((socket) => {
    socket.on('error', () => {});
    t.after(() => socket.destroy());
    // Flows, so that its end is seen.
    return socket.resume();
  });
  return new Witness((server.address() as AddressInfo).port, watched);
}
