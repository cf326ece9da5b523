/** Runs the matrix and puts what comes of it into the README: a part of `npm run docs`. */
import { spawnSync } from 'node:child_process';

const args = ['--import', 'tsx', '--test', 'test/matrix/through.test.ts'];
const env = { ...process.env, SIDEGATE_WRITE_MATRIX: '1' };
process.exitCode = spawnSync(process.execPath, args, { env, stdio: 'inherit' }).status ?? 1;
