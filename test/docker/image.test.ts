import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { environmentOf, last, readDockerfile, type Stage } from '../support/dockerfile.js';
import { buildByHand } from '../support/image.js';
import { readText, repository } from '../support/repository.js';

const stages = readDockerfile(readText('docker/Dockerfile'));
const image = stages.at(-1) as Stage;
const folder = mkdtempSync(join(tmpdir(), 'sidegate-image-'));
let app: string;

before(async () => {
  app = await buildByHand(stages, folder);
});

after(() => rmSync(folder, { recursive: true, force: true }));

/** A command in the image's exec form, as this machine runs it. */
function commandOf(text: string): [string, string[]] {
  const [command, ...args] = JSON.parse(text) as string[];
  assert.equal(command, 'node');
  return [process.execPath, args.map((arg) => arg.replace(/^\/app\//, `${app}/`))];
}

async function exitCodeOf(command: string, args: string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(command, args, { env, stdio: 'ignore' });
  const [code] = await once(child, 'exit');
  return code as number;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  assert.ok(address !== null && typeof address === 'object');
  return address.port;
}

async function firstLine(child: ChildProcess): Promise<string> {
  assert.ok(child.stdout);
  const [line] = await once(createInterface(child.stdout), 'line');
  return line as string;
}

test('the image holds what the gateway needs to run and nothing that only builds or tests it', () => {
  for (const needed of ['dist/cli/main.js', 'node_modules/undici', 'package.json', 'LICENSE'])
    assert.ok(existsSync(join(app, needed)), `${needed} is missing`);
  for (const needless of [
    'src',
    'test',
    '.ci',
    'node_modules/typescript',
    'node_modules/tsx',
    'node_modules/@biomejs',
  ])
    assert.ok(!existsSync(join(app, needless)), `${needless} is of no use in an image`);
});

test('its entry point tells the version of the package', async () => {
  const [command, args] = commandOf(last(image, 'ENTRYPOINT'));
  const { stdout } = await promisify(execFile)(command, [...args, '--version'], { cwd: tmpdir() });
  const { version } = JSON.parse(readText('package.json')) as { version: string };
  assert.ok(stdout.includes(version), stdout);
});

test('its health check says whether the gateway runs, and SIGTERM ends the gateway with success', async () => {
  const port = String(await freePort());
  const env = { PATH: process.env['PATH'], HOME: folder, ...environmentOf(image), SIDEGATE_PORT: port };
  const [command, args] = commandOf(last(image, 'ENTRYPOINT'));
  const health = commandOf(last(image, 'HEALTHCHECK').replace(/^.*?CMD\s+/, ''));
  assert.equal(await exitCodeOf(...health, env), 1);

  const config = join(repository, 'docker/sidegate.json');
  const gateway = spawn(command, [...args, '--config', config], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(gateway, 'exit');
  try {
    assert.match(await firstLine(gateway), new RegExp(`:${port}\\b`));
    assert.equal(await exitCodeOf(...health, env), 0);
  } finally {
    gateway.kill(last(image, 'STOPSIGNAL') as NodeJS.Signals);
  }
  assert.deepEqual(await ended, [0, null]);
  assert.equal(await exitCodeOf(...health, env), 1);
});
