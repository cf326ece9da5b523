import { once } from 'node:events';
import { pathToFileURL } from 'node:url';

/*
 * A process that logs to its stderr and does one thing, named by its second argument, when a line comes on stdin. It
 * says `ready` before and what it did afterwards. The first argument is the folder of the compiled program.
 */
const [folder, act] = process.argv.slice(2);
const part = (path) => import(pathToFileURL(`${folder}/dist/${path}`).href);
const { exitOnFault, killChildrenAtExit } = await part('cli/lifecycle.js');
const { createLogger } = await part('telemetry/logs.js');

const logger = createLogger({ level: 'trace' });
exitOnFault(logger);
killChildrenAtExit({ killChildren: () => process.stdout.write('children killed\n') });
process.stdout.write('ready\n');
await once(process.stdin, 'data');

switch (act) {
  case 'flood':
    for (let i = 0; i < 50_000; i++) logger.info({ i, filler: 'x'.repeat(100) }, 'flood');
    process.stdout.write('flooded\n');
    process.exit(0);
    break;
  case 'throw':
    setImmediate(() => {
      throw new Error('the fault');
    });
    break;
  case 'reject':
    Promise.reject(new Error('the fault'));
    break;
  case 'log on':
    // What a dead stderr made of a handler that logs every error: each log line was the next error.
    for (let i = 0; i < 1_000; i++) {
      logger.error('again');
      await new Promise((resolve) => setImmediate(resolve));
    }
    process.stdout.write('still there\n');
    process.exit(0);
}
