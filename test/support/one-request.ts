import { systemClock } from '../../src/base/clock.js';
import { OriginPools } from '../../src/upstream/origin.js';
import { openRemote } from '../../src/upstream/remote.js';
import { TransportMemory } from '../../src/upstream/transport-memory.js';
import { readMessage } from '../../src/wire/message.js';

/** A process of its own: asks the URL of its first argument once, closes nothing, and comes to its end. */
const link = await openRemote(
  { id: 'far', target: { url: process.argv[2] ?? '', transport: 'http', headers: {} } },
  {},
  { message: () => console.log('answered'), streamLost: () => {}, closed: () => {} },
  {
    clock: systemClock,
    random: Math.random,
    emit: () => {},
    origins: new OriginPools({ clock: systemClock, connectTimeoutMs: 10_000 }),
    transports: new TransportMemory(systemClock),
    maxAnswerBytes: 1_000,
    connectTimeoutMs: 10_000,
  },
);
await link.send(readMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}')));
