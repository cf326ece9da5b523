// biome-ignore-all lint/suspicious/noTemplateCurlyInString: such texts are what is tested
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RemoteTarget } from '../../src/config/types.js';
import { load, loaded, problems, remote, server } from '../support/config-file.js';

describe('the variables of a server', () => {
  const env = { SET: 'v', EMPTY: '', PORT: '9', MS: '1500', HOST: 'a.example' };

  it('are replaced by one rule in every field', async (t) => {
    const stdio = await server(
      t,
      {
        ...{ command: '${SET}', args: ['${SET}', '${EMPTY}', '${NONE:-d}', '$V', '${NONE:-${SET}}'] },
        ...{ env: { A: '${env:SET}' }, cwd: '/${SET}', connectTimeoutMs: '${MS}', isolate: '${NONE:-token}' },
      },
      env,
    );
    assert.deepEqual(stdio.target, {
      ...{ kind: 'stdio', command: 'v', args: ['v', '', 'd', '$V', 'v'], env: { A: 'v' }, cwd: '/v' },
    });
    assert.deepEqual([stdio.connectTimeoutMs, stdio.isolate], [1500, 'token']);
    const target = await remote(
      t,
      { url: 'http://${HOST}:${PORT}/${EMPTY}', headers: { A: 'B ${SET}' } },
      env,
    );
    assert.deepEqual([target.url, target.headers], ['http://a.example:9/', { A: 'B v' }]);
  });

  it('disable that server only, by name, wherever one is not set', async (t) => {
    const { servers, disabled } = await loaded(
      t,
      {
        header: { url: 'http://a.example', headers: { Authorization: 'Bearer ${TOKEN}' } },
        url: { url: 'http://${TOKEN}/' },
        env: { command: 'run', env: { A: '${TOKEN}' } },
        args: { command: 'run', args: ['${TOKEN}'] },
        command: { command: '${TOKEN}' },
        good: { command: 'run' },
      },
      env,
    );
    assert.deepEqual(
      servers.map(({ id }) => id),
      ['good'],
    );
    assert.deepEqual(
      disabled.flatMap(({ problems: lines }) => lines),
      [
        'mcpServers.header.headers.Authorization: variable TOKEN is not set',
        'mcpServers.url.url: variable TOKEN is not set',
        'mcpServers.env.env.A: variable TOKEN is not set',
        'mcpServers.args.args[0]: variable TOKEN is not set',
        'mcpServers.command.command: variable TOKEN is not set',
      ],
    );
  });

  it('never reach a problem or a warning with what they hold', async (t) => {
    const secret = 's3cr3t';
    const entry = {
      url: 'http://${S}:${S}@${S} ${S}/?k=${S}',
      headers: { A: '${S}\r\n', 'X Y': '${S}', Accept: '${S}' },
      env: { A: '${S}\0' },
      isolate: '${S}',
      type: '${S}',
      connectTimeoutMs: '${S}',
      disabled: '${S}',
    };
    const result = await load(t, { mcpServers: { x: entry } }, { env: { S: secret } });
    assert.ok(result.ok);
    assert.ok((result.config.disabled[0]?.problems.length ?? 0) >= 6);
    assert.ok(!JSON.stringify([result.config.disabled, result.warnings]).includes(secret));
  });
});

describe('the headers of a server', () => {
  it('must be such as a header can carry', async (t) => {
    const headers = { 'Bad Name': 'x', Line: 'a\r\nb', Emoji: '🙂', Twice: 'a', twice: 'b', Good: 'ü\t!' };
    assert.deepEqual(await problems(t, { url: 'http://a.example', headers }), [
      'mcpServers.x.headers["Bad Name"]: is not a header name',
      'mcpServers.x.headers.Line: holds what no header can carry',
      'mcpServers.x.headers.Emoji: holds what no header can carry',
      'mcpServers.x.headers.twice: is given twice',
    ]);
  });

  it('that the gateway sets itself are left out with a warning', async (t) => {
    const headers = { 'Content-Type': 'application/json', 'mcp-session-id': '1', Host: 'b.example' };
    const { servers, warnings } = await loaded(t, { x: { url: 'http://a.example', headers } });
    assert.deepEqual((servers[0]?.target as RemoteTarget | undefined)?.headers, { Host: 'b.example' });
    assert.equal(warnings.length, 2);
    assert.match(warnings[0] ?? '', /headers\.Content-Type: is left out/);
  });

  it('with a credential of their own stop that of the agent, unless it is asked for', async (t) => {
    const entry = { url: 'http://a.example', headers: { authorization: 'Bearer x' } };
    assert.equal((await remote(t, entry)).forwardAuthorization, false);
    assert.equal((await remote(t, { ...entry, forwardAuthorization: true })).forwardAuthorization, true);
  });

  it('take the user name and password out of the URL', async (t) => {
    const target = await remote(t, { url: 'https://me:p%40ss@a.example/mcp?x=1#y' });
    assert.equal(target.url, 'https://a.example/mcp?x=1');
    assert.deepEqual(target.headers, { Authorization: `Basic ${Buffer.from('me:p@ss').toString('base64')}` });
    assert.equal(target.forwardAuthorization, false);
  });
});
