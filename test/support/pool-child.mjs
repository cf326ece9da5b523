// An MCP server on stdio that writes what it does into a folder and takes its orders from there.
//   --folder=PATH   `log` in it gets a line for each start, initialize and call; `tools` in it, if it is there when the
//                   server starts, names its tools, comma separated; while `down` is there it exits at once
//   --mute          never answers initialize, but says so on stderr
//   --stubborn      ignores the end of its input and SIGTERM
// While `fragile` is in the folder it exits as soon as it is initialized; while `shaky` is there, instead of answering
// a list, after removing it.
// Tools: `count` counts the calls of this process; `pid`; `crash` exits instead of answering; `hang` never answers;
// `deafen` answers, then reads no more and stays.
import { appendFileSync, closeSync, existsSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';

const flags = new Map(process.argv.slice(2).map((flag) => flag.replace(/^--/, '').split('=')));
const file = (name) => `${flags.get('folder')}/${name}`;
const note = (what) => appendFileSync(file('log'), `${what} ${process.pid}\n`);
const say = (message) => writeSync(1, `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const text = (value) => ({ content: [{ type: 'text', text: String(value) }] });

note('start');
if (existsSync(file('down'))) {
  writeSync(2, 'the server is down\n');
  process.exit(1);
}
const names = existsSync(file('tools')) ? readFileSync(file('tools'), 'utf8').split(',') : ['count'];
let calls = 0;

const TOOLS = {
  count: () => text(++calls),
  pid: () => text(process.pid),
  crash: () => process.exit(3),
  hang: () => undefined,
  deafen: () => {
    setImmediate(() => {
      process.stdin.destroy();
      closeSync(0);
      setInterval(() => {}, 1000);
    });
    return text('deaf');
  },
};

const METHODS = {
  initialize: ({ protocolVersion }) =>
    flags.has('mute')
      ? undefined
      : {
          protocolVersion,
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name: 'child', version: '1' },
        },
  'notifications/initialized': () => existsSync(file('fragile')) && process.exit(4),
  'tools/list': () => {
    if (existsSync(file('shaky'))) {
      rmSync(file('shaky'));
      process.exit(5);
    }
    return { tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })) };
  },
  'tools/call': ({ name }) => {
    note(name);
    return TOOLS[name]();
  },
  ping: () => ({}),
};

// A test that failed to end it must not leave it behind for ever.
setTimeout(() => process.exit(99), 120_000).unref();
if (flags.has('stubborn')) {
  process.on('SIGTERM', () => {});
  setInterval(() => {}, 1000);
}
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') note('initialize');
  if (flags.has('mute')) writeSync(2, 'mute\n');
  const result = METHODS[method]?.(params);
  if (id !== undefined && result !== undefined) say({ id, result });
});
