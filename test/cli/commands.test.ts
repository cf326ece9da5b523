import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { EVERYTHING, entryOf, FILESYSTEM, runCli } from '../support/cli.js';
import { configFile, temporaryDirectory } from '../support/config-file.js';

describe('the program', () => {
  it('shows its help and its version on stdout', async (t) => {
    const help = await runCli(t, ['--help']);
    assert.deepEqual([help.code, help.stderr], [0, '']);
    assert.match(help.stdout, /^Sidegate/);
    const version = await runCli(t, ['--version']);
    assert.match(version.stdout, /^\d+\.\d+\.\d+\n$/);
  });

  it('ends with 2 where the command line is wrong, and says why on stderr alone', async (t) => {
    const { code, stdout, stderr } = await runCli(t, ['chekc']);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /There is no command "chekc" \(did you mean check\?\)/);
  });

  it('ends with 1 where the configuration is unusable, with every problem', async (t) => {
    const config = await configFile(t, { port: -1, maxTtlMs: 'x', mcpServers: {}, hots: 'a' });
    const { code, stdout, stderr } = await runCli(t, ['--config', config]);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /port: must be/);
    assert.match(stderr, /maxTtlMs: must be/);
    assert.match(stderr, /did you mean host\?/);
  });
});

describe('tools', () => {
  it('are printed of the bundled server where nothing is configured', async (t) => {
    const { code, stdout, stderr } = await runCli(t, ['tools']);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /^everything \(\d+\)\n {2}echo {2,}Echoes back/);
  });

  it('are printed of a command, as JSON with whole definitions', async (t) => {
    const folder = await temporaryDirectory(t);
    const { code, stdout } = await runCli(t, ['tools', '--json', '--fresh', '--', ...FILESYSTEM, folder]);
    assert.equal(code, 0);
    const [list] = Object.values(
      JSON.parse(stdout) as Record<string, { name: string; inputSchema: object }[]>,
    );
    const read = list?.find(({ name }) => name === 'read_text_file');
    assert.ok(read?.inputSchema);
  });

  it('are printed of every server that works, and the others end it with 1', async (t) => {
    const mcpServers = { good: entryOf(EVERYTHING), gone: { command: '/no/such/program' }, bad: {} };
    const config = await configFile(t, { mcpServers });
    const { code, stdout, stderr } = await runCli(t, ['tools', '--config', config]);
    assert.equal(code, 1);
    assert.match(stdout, /^good \(\d+\)/);
    assert.match(stderr, /gone/);
    assert.match(stderr, /bad.*needs a `command` or a `url`/);
    const one = await runCli(t, ['tools', 'good', '--config', config]);
    assert.equal(one.code, 0);
    const unknown = await runCli(t, ['tools', 'gold', '--config', config]);
    assert.equal(unknown.code, 2);
    assert.match(unknown.stderr, /There is no server "gold" \(did you mean good\?\)/);
  });

  it('never write to the terminal what it would obey', async (t) => {
    const folder = await temporaryDirectory(t);
    const server = join(folder, 'server.mjs');
    const tool = {
      name: 'a\u001b[31mb',
      description: 'x\u009b2J\u202ey\nsecond',
      inputSchema: { type: 'object' },
    };
    await writeFile(server, oneToolServer(tool));
    const plain = await runCli(t, ['tools', '--', process.execPath, server]);
    assert.match(plain.stdout, /^server \(1\)\n {2}a \[31mb {2}x 2J y\n$/);
    const json = await runCli(t, ['tools', '--json', '--', process.execPath, server]);
    for (const char of ['\u001b', '\u009b', '\u202e']) assert.ok(!json.stdout.includes(char));
    assert.deepEqual(JSON.parse(json.stdout), { server: [tool] });
  });
});

describe('call', () => {
  it('prints the result as JSON', async (t) => {
    const { code, stdout } = await runCli(t, ['call', 'echo', '{"message":"hi"}', '--', ...EVERYTHING]);
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(stdout), { content: [{ type: 'text', text: 'Echo: hi' }] });
  });

  it('reads its arguments from stdin', async (t) => {
    const folder = await temporaryDirectory(t);
    const path = join(folder, 'note.txt');
    await writeFile(path, 'a note');
    const options = { input: JSON.stringify({ path }) };
    const argv = ['call', 'read_text_file', '-', '--', ...FILESYSTEM, folder];
    const { code, stdout } = await runCli(t, argv, options);
    assert.equal(code, 0);
    assert.match(stdout, /a note/);
  });

  it('ends with 1 when the tool fails, and prints what it said', async (t) => {
    const { code, stdout } = await runCli(t, ['call', 'echo', '{}', '--', ...EVERYTHING]);
    assert.equal(code, 1);
    assert.equal((JSON.parse(stdout) as { isError?: boolean }).isError, true);
  });

  it('ends with 2 when its arguments are no JSON object', async (t) => {
    for (const json of ['{', '[]', 'null', '7'])
      assert.equal((await runCli(t, ['call', 'echo', json, '--', ...EVERYTHING])).code, 2, json);
  });

  it('wants to know which of several servers is meant', async (t) => {
    const mcpServers = { a: entryOf(EVERYTHING), b: entryOf(EVERYTHING), c: { disabled: true } };
    const config = await configFile(t, { mcpServers });
    const open = await runCli(t, ['call', 'echo', '--config', config]);
    assert.equal(open.code, 2);
    assert.match(open.stderr, /Say which server by --server: there are "a", "b"/);
    const off = await runCli(t, ['call', 'echo', '--config', config, '--server', 'c']);
    assert.equal(off.code, 2);
    assert.match(off.stderr, /Server "c" is switched off/);
    const named = await runCli(t, ['call', 'echo', '{"message":"b"}', '--config', config, '--server', 'b']);
    assert.equal(named.code, 0);
  });
});

describe('check', () => {
  it('has one line for each server, those that could be tried first, and ends with 1 when one cannot be used', async (t) => {
    const folder = await temporaryDirectory(t);
    const mcpServers = {
      files: entryOf([...FILESYSTEM, folder]),
      gone: { command: '/no/such/program' },
      all: entryOf(EVERYTHING),
      // biome-ignore lint/suspicious/noTemplateCurlyInString: what a configuration holds
      token: { url: 'http://127.0.0.1:9/mcp', headers: { A: '${NONE}' } },
      out: { disabled: true },
    };
    const config = await configFile(t, { mcpServers });
    const { code, stdout } = await runCli(t, ['check', '--config', config]);
    const lines = stdout.trimEnd().split('\n');
    assert.equal(code, 1);
    assert.match(lines[0] ?? '', /^ok +files +\d+ tools +\d{4}-\d{2}-\d{2} +\d+ ms$/);
    assert.match(lines[1] ?? '', /^failed +gone +.*gone/);
    assert.match(lines[2] ?? '', /^ok +all +\d+ tools/);
    assert.match(
      lines[3] ?? '',
      /^disabled +token +mcpServers\.token\.headers\.A: variable NONE is not set$/,
    );
    assert.match(lines[4] ?? '', /^off +out$/);
    assert.equal(lines.length, 5);
  });

  it('ends with 0 when every server works', async (t) => {
    const { code, stdout } = await runCli(t, ['check', '--', ...EVERYTHING]);
    assert.equal(code, 0);
    assert.match(stdout, /^ok {2}index {2}\d+ tools/);
  });

  it('says what is wrong with the one server of the command line', async (t) => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: what is typed
    const { code, stderr } = await runCli(t, ['check', 'http://127.0.0.1:9/mcp', '--header', 'A: ${NONE}']);
    assert.equal(code, 1);
    assert.match(stderr, /headers\.A: variable NONE is not set/);
  });
});

/** A stdio server with one tool, which the official classes would not let through. */
function oneToolServer(tool: object): string {
  return `
import { createInterface } from 'node:readline';
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  const about = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } };
  const result = method === 'initialize' ? about : { tools: [${JSON.stringify(tool)}] };
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
}
`;
}
