import { once } from 'node:events';
import { exitOnFault, killChildrenAtExit } from '../../src/cli/lifecycle.js';
import { createLogger } from '../../src/telemetry/logs.js';

/*
 * A process that logs to its stderr and does one thing, named by its argument, when a line comes on stdin. It says
 * `ready` before and what it did afterwards.
 */
const logger = createLogger({ level: 'trace' });
exitOnFault(logger);
killChildrenAtExit({ killChildren: () => process.stdout.write('children killed\n') });
process.stdout.write('ready\n');
await once(process.stdin, 'data');

switch (process.argv[2]) {
  case 'flood':
    for (let i = 0; i < 50_000; i++) logger.info({ i, filler: 'x'.repeat(100) }, 'flood');
    process.stdout.write('flooded\n');
    process.exit(0);
  case 'throw':
    setImmediate(() => {
      throw new Error('the fault');
    });
    break;
  case 'reject':
    void Promise.reject(new Error('the fault'));
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
