// A server on stdio that misbehaves on demand. What it does at the start is given by flags, and every line that it
// reads names a method to run:
//   --say=BASE64      writes these bytes to stdout first        --complain=TEXT  writes this to stderr first
//   --exit=CODE       then exits at once                        --deaf           never reads its stdin
//   --stubborn        ignores the end of its input and SIGTERM  --linger         ignores the end of its input only
//   --wrap=quiet      runs a stubborn copy of itself without pipes, prints its pid, and leaves when its input ends
//   --wrap=holding    the same, but the copy inherits stdin, stdout and stderr, and the wrapper leaves at once
//   --wrap=escaping   the same, and the copy has a process group of its own
import { spawn } from 'node:child_process';
import { closeSync, writeSync } from 'node:fs';

const flags = new Map(process.argv.slice(2).map((flag) => flag.replace(/^--/, '').split(/=(.*)/s)));

/** Writes all bytes, waiting where the pipe is full. */
function write(fd, bytes) {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(fd, bytes, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

function say(message) {
  write(1, Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`));
}

function quit({ code = 0, stderr = '' } = {}) {
  write(2, Buffer.from(stderr));
  process.exit(code);
}

const METHODS = {
  echo: (params) => params,
  environment: () => process.env,
  directory: () => process.cwd(),
  pid: () => process.pid,
  /** Fills the stderr pipe several times over, without a line end where `line` has none. */
  flood: ({ line, times }) => {
    for (let i = 0; i < times; i++) write(2, Buffer.from(line));
    return 'flooded';
  },
  big: ({ bytes }) => 'x'.repeat(bytes),
  /** Each of the pieces, base64, in a write of its own. */
  raw: ({ pieces }) => {
    for (const piece of pieces) write(1, Buffer.from(piece, 'base64'));
  },
  endless: ({ bytes }) => {
    try {
      for (let sent = 0; sent < bytes; sent += 65536) write(1, Buffer.alloc(65536, 0x78));
    } catch {
      // The reader hung up.
    }
  },
  exit: quit,
  'notifications/exit': quit,
  closeInput: () => {
    process.stdin.destroy();
    closeSync(0);
    setInterval(() => {}, 1000);
  },
  closeOutput: () => {
    closeSync(1);
    setInterval(() => {}, 1000);
  },
};

function answer(line) {
  const { id, method, params } = JSON.parse(line);
  const result = METHODS[method]?.(params);
  if (id !== undefined && result !== undefined) say({ id, result });
}

function listen() {
  let text = '';
  process.stdin.setEncoding('utf8').on('data', (chunk) => {
    const lines = (text + chunk).split('\n');
    text = lines.pop();
    for (const line of lines) answer(line);
  });
}

function wrap(how) {
  const holding = how !== 'quiet';
  const copy = spawn(process.execPath, [process.argv[1], '--stubborn', ...(holding ? [] : ['--deaf'])], {
    detached: how === 'escaping',
    stdio: holding ? 'inherit' : ['ignore', 'pipe', 'ignore'],
  });
  const leave = () => {
    say({ method: 'notifications/wrapped', params: { pid: copy.pid } });
    if (holding) process.exit(0);
    process.stdin.resume().on('end', () => process.exit(0));
  };
  // A copy that has not set its handlers up would not be stubborn.
  if (holding) copy.once('spawn', leave);
  else copy.stdout.once('data', leave);
}

// A test that failed to end it must not leave it behind for ever.
setTimeout(() => process.exit(99), 120_000).unref();
if (flags.has('say')) write(1, Buffer.from(flags.get('say'), 'base64'));
if (flags.has('complain')) write(2, Buffer.from(flags.get('complain')));
if (flags.has('stubborn')) process.on('SIGTERM', () => {});
if (flags.has('stubborn') || flags.has('linger')) setInterval(() => {}, 1000);
if (flags.has('deaf')) {
  setInterval(() => {}, 1000);
  if (flags.has('stubborn')) say({ method: 'notifications/ready' });
} else if (flags.has('exit')) process.exit(Number(flags.get('exit')));
else if (flags.has('wrap')) wrap(flags.get('wrap'));
else listen();
