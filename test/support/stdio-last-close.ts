import { systemClock } from '../../src/base/clock.js';
import { ChildRegistry } from '../../src/upstream/child.js';
import { openStdio } from '../../src/upstream/stdio.js';

// A whole process whose last act is to close a link whose wrapper leaves a stubborn descendant without pipes: nothing
// but the close itself can keep this process alive. Prints `closed` and the descendant's pid.
const script = new URL('./stdio-child.mjs', import.meta.url).pathname;
const { promise: wrapped, resolve } = withResolvers<number>();
const link = await openStdio(
  {
    id: 'files',
    target: { command: process.execPath, args: [script, '--wrap=quiet'], env: {}, cwd: undefined },
  },
  {
    message: (message) =>
      resolve((JSON.parse(message.bytes.toString()) as { params: { pid: number } }).params.pid),
    streamLost: () => {},
    closed: () => {},
  },
  {
    maxLineBytes: 1000,
    emit: () => {},
    clock: systemClock,
    env: process.env,
    children: new ChildRegistry(),
    closeGraceMs: 300,
    termGraceMs: 100,
  },
);
const pid = await wrapped;
await link.close();
console.log(`closed ${pid}`);

function withResolvers<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
