import { systemClock } from '../../src/base/clock.js';
import { ChildRegistry } from '../../src/upstream/child.js';
import { openStdio } from '../../src/upstream/stdio.js';
import { CHILD } from './stdio-harness.js';

// A whole process with one link, whose wrapper has a stubborn descendant without pipes. Its last act is to close the
// link, which nothing but the close itself keeps it alive for, or to exit. Prints the act and the descendant's pid.
const act = process.argv[2];
const children = new ChildRegistry();
let wrapped: (pid: number) => void = () => {};
const wrappedPid = new Promise<number>((resolve) => {
  wrapped = resolve;
});
const link = await openStdio(
  {
    id: 'files',
    target: { command: process.execPath, args: [CHILD, '--wrap=quiet'], env: {}, cwd: undefined },
  },
  {
    message: (message) => wrapped(JSON.parse(message.bytes.toString()).params.pid as number),
    streamLost: () => {},
    closed: () => {},
  },
  {
    maxLineBytes: 1000,
    emit: () => {},
    clock: systemClock,
    env: process.env,
    children,
    closeGraceMs: 300,
    termGraceMs: 100,
  },
);
process.once('exit', () => children.killAllChildren());
const pid = await wrappedPid;
if (act === 'close') await link.close();
console.log(`${act} ${pid}`);
if (act === 'exit') process.exit(0);
