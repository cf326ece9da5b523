import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Check, Run } from './checks.js';
import { runToEnd } from './processes.js';

const home = fileURLToPath(new URL('../referee/', import.meta.url));
const modules = join(home, 'node_modules');
const suite = join(modules, '@modelcontextprotocol/conformance');

/** The suite imports what Node has since this version. */
const nodeMajor = 22;

interface PackageJson {
  readonly version?: string;
  readonly bin?: Record<string, string>;
  readonly dependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
}

/** The official conformance suite, as installed beside this folder. */
export interface Referee {
  /** The server scenarios that a revision requires. */
  required(revision: string): Promise<readonly string[]>;
  /** Runs all of a revision's server scenarios, the unscored ones included, against an endpoint. */
  judge(url: string, revision: string, outputDir: string): Promise<Run>;
  /**
   * Runs one client scenario with a client's command, to which the URL of the scenario's own server is appended; the
   * client learns the scenario's name from `MCP_CONFORMANCE_SCENARIO`.
   */
  judgeClient(command: string, scenario: string, revision: string, outputDir: string): Promise<Run>;
}

/** Installs the suite and its Node first, where they are missing or not the pinned ones. */
export async function openReferee(): Promise<Referee> {
  if (!(await isInstalled())) await install();
  const node = await findNode();
  if (!node)
    throw new Error(`No Node ${nodeMajor} for ${process.platform} ${process.arch}: run with a newer Node`);
  return {
    required,
    judge: (url, revision, outputDir) => judge(node, url, revision, outputDir),
    judgeClient: (...given) => judgeClient(node, ...given),
  };
}

async function readPackage(folder: string): Promise<PackageJson> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as PackageJson;
}

async function isInstalled(): Promise<boolean> {
  if (!existsSync(suite)) return false;
  const [wanted, installed] = await Promise.all([readPackage(home), readPackage(suite)]);
  const isPinned = wanted.dependencies?.['@modelcontextprotocol/conformance'] === installed.version;
  return isPinned && (await findNode()) !== undefined;
}

/** Without install scripts: nothing here needs one, and newer npm versions refuse them. */
async function install(): Promise<void> {
  const args = ['ci', '--prefix', home, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const code = await runToEnd('npm', args, { timeoutMs: 600_000, shell: process.platform === 'win32' });
  if (code !== 0) throw new Error(`npm could not install the conformance suite in ${home}`);
}

/** Of the Node packages, one for each platform, npm installs only the one that fits. */
async function findNode(): Promise<string | undefined> {
  if (Number.parseInt(process.versions.node, 10) >= nodeMajor) return process.execPath;
  const { optionalDependencies = {} } = await readPackage(home);
  const name = Object.keys(optionalDependencies).find((candidate) => existsSync(join(modules, candidate)));
  if (name === undefined) return undefined;
  const folder = join(modules, name);
  return join(folder, (await readPackage(folder)).bin?.['node'] ?? 'bin/node');
}

async function required(revision: string): Promise<readonly string[]> {
  const yaml = await readFile(join(suite, 'requirements', `${revision}.yaml`), 'utf8');
  const section = yaml.split(/^(?=\w+:)/m).find((part) => part.startsWith('server:')) ?? '';
  return [...section.matchAll(/^ {2}- (\S+)/gm)].map(([, name = '']) => name);
}

async function judge(node: string, url: string, revision: string, outputDir: string): Promise<Run> {
  await mkdir(outputDir, { recursive: true });
  const args = ['server', '--url', url, '--requirements', revision, '--output-dir', outputDir];
  await runToEnd(node, [join(suite, 'dist/index.js'), ...args], {
    timeoutMs: 900_000,
    logFile: join(outputDir, 'referee.log'),
  });
  return readRun(outputDir);
}

async function judgeClient(
  node: string,
  command: string,
  scenario: string,
  revision: string,
  outputDir: string,
): Promise<Run> {
  await mkdir(outputDir, { recursive: true });
  const which = ['--command', command, '--scenario', scenario, '--spec-version', revision];
  const args = ['client', ...which, '--force', '--output-dir', outputDir];
  await runToEnd(node, [join(suite, 'dist/index.js'), ...args], {
    timeoutMs: 60_000,
    logFile: join(outputDir, 'referee.log'),
  });
  return readRun(outputDir);
}

/** The suite leaves a folder `server-<scenario>-<instant>` for every server scenario, and one without the prefix for a client’s. */
async function readRun(outputDir: string): Promise<Run> {
  const files = (await readdir(outputDir, { recursive: true })).filter((file) =>
    file.endsWith('checks.json'),
  );
  const entries = files.sort().map(async (file) => {
    const scenario = dirname(file)
      .replace(/^server-/, '')
      .replace(/-\d{4}-\d\d-\d\dT[\dZ-]+$/, '');
    const checks = JSON.parse(await readFile(join(outputDir, file), 'utf8')) as Check[];
    return [scenario, checks] as const;
  });
  return new Map(await Promise.all(entries));
}
