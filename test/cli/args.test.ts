// biome-ignore-all lint/suspicious/noTemplateCurlyInString: such texts are what is tested
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseCommand } from '../../src/cli/args.js';
import { UsageError } from '../../src/cli/usage.js';

const NOTHING = { source: undefined, config: undefined, flags: {}, server: undefined };

function refusal(...argv: string[]): string {
  try {
    parseCommand(argv);
  } catch (error) {
    assert.ok(error instanceof UsageError, String(error));
    return error.message;
  }
  throw new Error(`was accepted: ${argv.join(' ')}`);
}

describe('the command line', () => {
  it('serves when it names no command', () => {
    assert.deepEqual(parseCommand([]), { name: 'serve', selection: NOTHING, stdio: false });
    const flags = ['--config', 'f', '--host=::1', '--port', '0', '--log-level', 'DEBUG'];
    assert.deepEqual(parseCommand(flags), {
      name: 'serve',
      selection: { ...NOTHING, config: 'f', flags: { host: '::1', port: '0', logLevel: 'DEBUG' } },
      stdio: false,
    });
  });

  it('serves a URL with headers', () => {
    const argv = ['https://a.example/mcp', '--header', 'A: b: c', '--header=Empty:', '--port', '1'];
    assert.deepEqual(parseCommand(argv), {
      name: 'serve',
      selection: {
        ...NOTHING,
        source: { kind: 'remote', url: 'https://a.example/mcp', headers: { A: 'b: c', Empty: '' } },
        flags: { port: '1' },
      },
      stdio: false,
    });
  });

  it('serves a command, whose own flags are not ours', () => {
    assert.deepEqual(parseCommand(['--stdio', '--', 'npx', '--port', '-y', '--', 'x']), {
      name: 'serve',
      selection: {
        ...NOTHING,
        source: { kind: 'command', command: 'npx', args: ['--port', '-y', '--', 'x'] },
      },
      stdio: true,
    });
  });

  it('lists, calls and checks with the same sources', () => {
    const source = { kind: 'remote', url: 'http://a.example', headers: {} } as const;
    assert.deepEqual(parseCommand(['tools', 'files', '--fresh', '--json']), {
      name: 'tools',
      selection: { ...NOTHING, server: 'files' },
      fresh: true,
      json: true,
    });
    assert.deepEqual(parseCommand(['call', 'http://a.example', 'echo', '-', '--server', 's']), {
      name: 'call',
      selection: { ...NOTHING, source, server: 's' },
      tool: 'echo',
      input: '-',
    });
    assert.deepEqual(parseCommand(['check', '--', 'run']), {
      name: 'check',
      selection: { ...NOTHING, source: { kind: 'command', command: 'run', args: [] } },
    });
  });

  it('shows help and version whatever else is said', () => {
    for (const argv of [['--help'], ['-h'], ['help'], ['tools', '--port', '1', '-h']])
      assert.deepEqual(parseCommand(argv), { name: 'help' });
    for (const argv of [['--version'], ['-v'], ['version']])
      assert.deepEqual(parseCommand(argv), { name: 'version' });
  });

  it('is refused with the nearest match for what nobody knows', () => {
    assert.equal(refusal('--prot', '1'), 'There is no flag --prot (did you mean --port?)');
    assert.equal(refusal('--loglevel=info'), 'There is no flag --loglevel (did you mean --log-level?)');
    assert.equal(refusal('-x'), 'There is no flag -x');
    assert.equal(refusal('tools', '-x'), 'There is no flag -x');
    assert.equal(
      refusal('npx', '-y', 'some-server'),
      "There is no flag -y; a server's command goes behind --: sidegate -- npx -y …",
    );
    assert.equal(refusal('tool'), 'There is no command "tool" (did you mean tools?)');
    assert.equal(refusal('frobnicate'), 'There is no command "frobnicate"');
    assert.match(refusal('localhost:3000/mcp'), /a URL begins with http:\/\//);
  });

  it('is refused where its words do not go together', () => {
    for (const [argv, why] of [
      [['check', '--port', '1'], /--port has no meaning for check/],
      [['tools', '--stdio'], /--stdio has no meaning for tools/],
      [['--server', 'x'], /--server goes with --stdio/],
      [['--stdio', '--port', '1'], /--stdio listens on no port/],
      [['http://a', '--config', 'f'], /a URL and --config are given/],
      [['--config', 'f', '--', 'run'], /a command and --config are given/],
      [['http://a', '--', 'run'], /a URL and a command are given/],
      [['http://a', 'http://b'], /Several URLs/],
      [['--header', 'A: b'], /--header goes with a URL/],
      [['--'], /needs a command behind it/],
      [['call'], /needs the name of a tool/],
      [['call', 'a', '{}', 'b'], /call does not take "b"/],
      [['tools', 'a', 'b'], /tools does not take "b"/],
      [['tools', 'a', '--server', 'b'], /Two servers are named/],
      [['--config'], /--config needs a value/],
      [['--config', '--stdio'], /--config needs a value/],
      [['--stdio=yes'], /--stdio takes no value/],
    ] as const)
      assert.match(refusal(...argv), why, argv.join(' '));
  });

  it('is refused where a value is wrong', () => {
    assert.equal(refusal('--port', '70000'), '--port: must be a whole number from 0 to 65535');
    assert.match(refusal('--log-level', 'loud'), /^--log-level: must be one of silent, /);
    assert.match(refusal('--host', ''), /^--host: must not be empty/);
  });

  it('is refused without a word of a header that may be a secret', () => {
    assert.equal(refusal('http://a', '--header', 's3cr3t'), "--header is written 'Name: value'");
    assert.equal(
      refusal('http://a', '--header', 'A: s3cr3t', '--header', 'A: s3cr3t'),
      '--header gives A twice',
    );
    assert.ok(!refusal('--header', 'A: s3cr3t').includes('s3cr3t'));
  });
});
