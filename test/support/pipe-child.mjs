// A stdio server without a will of its own: what it reads goes to a socket, and what comes from there is what it writes.
// The test on the other end of the socket is the server.
import { connect } from 'node:net';

const socket = connect(Number(process.argv[2]), '127.0.0.1');
process.stdin.pipe(socket);
socket.pipe(process.stdout);
socket.on('close', () => process.exit(0));
socket.on('error', () => process.exit(1));
// A test that failed to end it must not leave it behind for ever.
setTimeout(() => process.exit(99), 240_000).unref();
