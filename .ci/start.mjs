// `npm start`: makes the clone ready, then becomes the gateway. One process, so that signals, stdin and stdout are the
// gateway's own and none is left behind when npm is stopped.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ready } from './ready.mjs';
import { root } from './root.mjs';

try {
  ready();
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
const main = join(root, 'dist', 'cli', 'main.js');
process.argv[1] = main;
await import(pathToFileURL(main).href);
