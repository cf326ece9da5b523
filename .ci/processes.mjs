// Runs a command as a group that can be ended whole: a test's servers are its children's children.

import { spawn } from 'node:child_process';

const TAIL_CHARS = 65_536;

/**
 * Runs `command` with its output shown as it comes. Resolves to its exit status (never null: a signal counts as 1),
 * the last of its stdout, and whether it was ended for taking longer than `limitMs`. Never rejects.
 */
export function run(command, args, { cwd, limitMs, env = process.env }) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
    let tail = '';
    let timedOut = false;
    const end = () => endGroup(child.pid);
    const timer = setTimeout(() => {
      timedOut = true;
      end();
    }, limitMs);
    const stop = (signal) => {
      end();
      process.exit(signal === 'SIGINT' ? 130 : 143);
    };
    process.once('SIGINT', stop).once('SIGTERM', stop);
    child.stdout.setEncoding('utf8').on('data', (text) => {
      process.stdout.write(text);
      tail = (tail + text).slice(-TAIL_CHARS);
    });
    const settle = (status) => {
      clearTimeout(timer);
      process.off('SIGINT', stop).off('SIGTERM', stop);
      resolve({ status: status ?? 1, tail, timedOut });
    };
    child.on('error', (error) => {
      console.error(`${command}: ${error.message}`);
      settle(1);
    });
    child.on('exit', end);
    child.on('close', settle);
  });
}

/** What is left of a group whose leader has ended is ended too. */
function endGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nobody is left.
  }
}
