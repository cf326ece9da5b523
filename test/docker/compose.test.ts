import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readText } from '../support/repository.js';

const compose = readText('docker/compose.yaml').replaceAll(/^\s*#.*\n/gm, '');

/** The text of each service, by its name: what stands below `services:` two columns in. */
function services(): Map<string, string> {
  const [, below = ''] = compose.split(/^services:\n/m);
  const blocks = below.split(/^ {2}(?=\w+:\n)/m).filter((block) => block.trim());
  return new Map(blocks.map((block) => [block.slice(0, block.indexOf(':')), block]));
}

test('the gateway stands beside one server', () => {
  assert.deepEqual([...services().keys()], ['sidegate', 'everything']);
});

test('nothing is published but to the loopback address of the machine', () => {
  const published = [...compose.matchAll(/^\s+ports:\n((?:\s+(?:- ).*\n)+)/gm)].flatMap(([, lines = '']) =>
    lines.trim().split('\n'),
  );
  assert.ok(published.length > 0);
  for (const line of published) assert.match(line, /^\s*- "127\.0\.0\.1:/);
});

test('every service runs without rights it does not need, and has its orphans reaped', () => {
  const wanted = ['read_only: true', 'cap_drop: [ALL]', 'no-new-privileges:true', 'init: true', 'tmpfs:'];
  for (const [name, text] of services())
    for (const line of wanted) assert.ok(text.includes(line), `${name} lacks ${line}`);
});

test('the server beside is the version that the tests run against', () => {
  const lock = JSON.parse(readText('package-lock.json')) as { packages: Record<string, { version: string }> };
  const name = '@modelcontextprotocol/server-everything';
  const [, pinned] = /server-everything@([\w.-]+)/.exec(compose) ?? [];
  assert.equal(pinned, lock.packages[`node_modules/${name}`]?.version);
});

test('the mounted configuration is the one in the repository, and takes its address from the environment', () => {
  assert.match(compose, /- \.\/sidegate\.json:\/etc\/sidegate\/sidegate\.json:ro/);
  assert.match(compose, /command: \["--config", "\/etc\/sidegate\/sidegate\.json"\]/);
  const config = JSON.parse(readText('docker/sidegate.json')) as {
    mcpServers: Record<string, { url: string }>;
  };
  // biome-ignore lint/suspicious/noTemplateCurlyInString: this is the gateway's own notation.
  assert.equal(config.mcpServers['everything']?.url, '${EVERYTHING_URL:-http://everything:3001/mcp}');
});
