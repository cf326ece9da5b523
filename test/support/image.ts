import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { environmentOf, inContext, type Stage } from './dockerfile.js';
import { readText, repository } from './repository.js';

/**
 * Does what `docker build` does, without Docker: each stage in a folder of its own below `folder`, where `/app` of the
 * image is the stage's `app`. Bases are taken to be this machine. Answers the last stage's `app`.
 */
export async function buildByHand(stages: readonly Stage[], folder: string): Promise<string> {
  const context = join(folder, 'context');
  const ignored = readText('.dockerignore');
  for (const name of readdirSync(repository))
    if (inContext(ignored, name)) cpSync(join(repository, name), join(context, name), { recursive: true });
  for (const [index, stage] of stages.entries()) await buildStage(stage, index, stages, folder);
  return join(folder, String(stages.length - 1), 'app');
}

async function buildStage(
  stage: Stage,
  index: number,
  stages: readonly Stage[],
  folder: string,
): Promise<void> {
  const app = join(folder, String(index), 'app');
  mkdirSync(app, { recursive: true });
  for (const { name, text } of stage.instructions) {
    if (name === 'WORKDIR' && text !== '/app') throw new Error(`Only /app can be built by hand, not ${text}`);
    if (name === 'COPY') copy(text, app, (from) => sourceFolder(from, stages, folder));
    if (name === 'RUN') await runLine(text, app, environmentOf(stage));
  }
}

function sourceFolder(from: string | undefined, stages: readonly Stage[], folder: string): string {
  if (from === undefined) return join(folder, 'context');
  const index = stages.findIndex(({ name }) => name === from);
  if (index < 0) throw new Error(`There is no stage ${from}`);
  return join(folder, String(index));
}

/** A folder's contents go into the target, a file goes below a target that ends in `/` or is the working folder. */
function copy(text: string, app: string, sourceOf: (from: string | undefined) => string): void {
  const words = text.split(/\s+/);
  const from = words[0]?.startsWith('--from=') ? words.shift()?.slice('--from='.length) : undefined;
  const target = words.pop() as string;
  for (const word of words) {
    const into = /^\.?\/?$|\/$/.test(target) ? join(app, target, basename(word)) : join(app, target);
    cpSync(join(sourceOf(from), word), into, { recursive: true, verbatimSymlinks: true });
  }
}

async function runLine(line: string, app: string, variables: Record<string, string>): Promise<void> {
  const { NODE_ENV: _, ...own } = process.env;
  const env = { ...own, npm_config_prefer_offline: 'true', ...variables };
  await promisify(execFile)('sh', ['-c', line], { cwd: app, env, maxBuffer: 16 * 1024 * 1024 });
}
