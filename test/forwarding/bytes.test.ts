import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { serveAgentOnStdio } from '../../src/app/gateway.js';
import { parseConfig } from '../../src/config/load.js';
import { TestAgent } from '../support/agent-gateway.js';
import { ChannelServer } from '../support/channel-server.js';
import { forwarding, nextText, PATIENCE } from '../support/forwarding.js';
import { EVENT_STREAM, HttpUpstream, JSON_BODY } from '../support/http-upstream.js';
import { greet, LineAgent, PairAgent, type TextAgent } from '../support/line-agent.js';
import { ODD_ERRORS, ODD_IDS, ODD_LISTS, ODD_OBJECTS, ODD_RESULTS } from '../support/odd-json.js';

/** A request and its answer. `ID` stands where an id goes. */
interface Case {
  readonly name: string;
  readonly method: string;
  readonly request: string;
  readonly answer: string;
}

const ID = '§';
const put = (text: string, id: string) => text.replace(ID, () => id);
const requestOf = (method: string, params: string) =>
  `{"jsonrpc":"2.0", "id" : ${ID},"method":${JSON.stringify(method).replaceAll('/', '\\/')} ,"params": ${params},"extra":{"x":1.0}}`;

function cases(): Case[] {
  const all: Case[] = [];
  const add = (name: string, params: string, answer: string) => {
    const method = `odd/${all.length}`;
    all.push({ name, method, request: requestOf(method, params), answer });
  };
  for (const [name, json] of Object.entries(ODD_OBJECTS)) {
    add(`params with ${name}`, json, `{"jsonrpc":"2.0","id":${ID},"result":{}}`);
    add(`a result with ${name}`, '{}', `{"result":${json}, "id" : ${ID},"jsonrpc":"2.0","more":[1.0]}`);
    add(
      `an error with ${name}`,
      '{}',
      `{"error":{"code":1,"message":"m","data":${json}},"jsonrpc":"2.0","id":${ID}}`,
    );
  }
  for (const [name, json] of Object.entries(ODD_RESULTS))
    add(name, '{}', `{ "jsonrpc":"2.0","result":${json},"id":${ID} }`);
  for (const [name, json] of Object.entries(ODD_ERRORS))
    add(name, '{}', `{"\\u0069d":${ID},"error":${json},"jsonrpc":"2.0"}`);
  for (const value of ['1.0', '"\\u0061"', 'null', 'true', '[1,2.50]', '-0'])
    add(`a result that is ${value}`, '[1.0,"by position"]', `{"jsonrpc":"2.0","id":${ID},"result":${value}}`);
  return all;
}

const CASES = cases();
const BY_METHOD = new Map(CASES.map((one) => [one.method, one]));

/** The id of a request, as it is spelled. */
const idOf = (text: string) => /"id" : ("(?:[^"\\]|\\.)*"|[^,]+),/.exec(text)?.[1] ?? '';

/** Params of a question, whose members the gateway must tell apart. */
const asked = (json: string) => (json === ODD_OBJECTS['repeated members'] ? '{"a":1}' : json);

/** A server that answers by the table. */
interface Upstream {
  readonly entry: object;
  /** Requests as they came. */
  readonly requests: string[];
  /** What of a text the transport cannot carry is changed as it must be. */
  readonly carries: (text: string) => string;
  close(): Promise<void>;
}

/** A message must stand on one line: its line breaks are white space, so any other white space may stand for them. */
const onOneLine = (text: string) => text.replaceAll('\n', ' ');
const asIs = (text: string) => text;
const asEvent = (text: string) => `event: message\ndata: ${text.replaceAll('\n', '\ndata: ')}\n\n`;

async function httpUpstream(events: boolean): Promise<Upstream> {
  const server = await HttpUpstream.start();
  const requests: string[] = [];
  server.serveSessions('/mcp', ({ body, json }, response) => {
    requests.push(body);
    const answer = put(BY_METHOD.get(json.method)?.answer ?? '', idOf(body));
    response.play(
      events
        ? { headers: EVENT_STREAM, chunks: [asEvent(answer)] }
        : { headers: JSON_BODY, chunks: [answer] },
    );
  });
  const entry = { url: server.url(), type: 'http' };
  return { entry, requests, carries: asIs, close: () => server.stop() };
}

async function channelUpstream(kind: 'stdio' | 'sse'): Promise<Upstream> {
  const server = await ChannelServer.start(kind);
  const requests: string[] = [];
  const carries = kind === 'stdio' ? onOneLine : asIs;
  for (const { method, answer } of CASES)
    server.on[method] = ({ raw }) => {
      requests.push(raw);
      server.say(carries(put(answer, idOf(raw))));
      return undefined;
    };
  return { entry: server.entry, requests, carries, close: () => server.close() };
}

const UPSTREAMS: Readonly<Record<string, () => Promise<Upstream>>> = {
  'HTTP with JSON answers': () => httpUpstream(false),
  'HTTP with event streams': () => httpUpstream(true),
  'a child on stdio': () => channelUpstream('stdio'),
  'HTTP+SSE': () => channelUpstream('sse'),
};

/** An agent's side: sends a request, gives its answer. */
type Ask = (request: string) => Promise<string>;

interface Downstream {
  readonly ask: Ask;
  readonly carries: (text: string) => string;
}

const overHttp =
  (accept: string) =>
  async (t: TestContext, upstream: Upstream): Promise<Downstream> => {
    const bench = await forwarding(t, { servers: { one: upstream.entry }, behind: [upstream] });
    const agent = await bench.agent();
    const ask = async (request: string) => {
      const answer = await agent.open(request, { accept });
      return accept === 'application/json' ? answer.text() : nextText(answer);
    };
    return { ask, carries: asIs };
  };

const asking =
  (agent: TextAgent): Ask =>
  async (request) => {
    await agent.say(request);
    return agent.hear();
  };

async function overPair(t: TestContext, upstream: Upstream): Promise<Downstream> {
  const bench = await forwarding(t, { servers: { one: upstream.entry }, behind: [upstream] });
  const agent = await PairAgent.connect(`${bench.gateway.url}/servers/one/sse`);
  await greet(agent);
  return { ask: asking(agent), carries: asIs };
}

async function overStdio(t: TestContext, upstream: Upstream): Promise<Downstream> {
  const { config } = parseConfig({ mcpServers: { one: upstream.entry } }, {});
  const agent = new LineAgent();
  const gateway = serveAgentOnStdio(config, { serverId: 'one', stdin: agent.stdin, stdout: agent.stdout });
  t.after(async () => {
    await gateway.close();
    await upstream.close();
  });
  await greet(agent);
  return { ask: asking(agent), carries: onOneLine };
}

const DOWNSTREAMS = {
  'plain JSON': overHttp('application/json'),
  'an event stream': overHttp('text/event-stream'),
  'HTTP+SSE': overPair,
  stdio: overStdio,
};

for (const [behind, upstreamOf] of Object.entries(UPSTREAMS))
  for (const [before, downstreamOf] of Object.entries(DOWNSTREAMS))
    test(
      `every byte but the id passes from an agent with ${before} to ${behind} and back`,
      PATIENCE,
      async (t) => {
        const upstream = await upstreamOf();
        const downstream = await downstreamOf(t, upstream);
        for (const [at, { name, request, answer }] of CASES.entries()) {
          const id = ODD_IDS[at % ODD_IDS.length] ?? '';
          const sent = downstream.carries(put(request, id));
          const got = await downstream.ask(sent);
          assert.equal(got, downstream.carries(upstream.carries(put(answer, id))), name);
          const received = upstream.requests.at(-1) ?? '';
          assert.match(idOf(received), /^\d+$/);
          assert.equal(received, put(upstream.carries(downstream.carries(request)), idOf(received)), name);
        }
      },
    );

test('what an agent gets is what it would have got without a gateway', PATIENCE, async (t) => {
  const upstream = await httpUpstream(false);
  const bench = await forwarding(t, { servers: { one: upstream.entry }, behind: [upstream] });
  const through = await bench.agent();
  const direct = await TestAgent.connect((upstream.entry as { url: string }).url);
  for (const [at, { name, request }] of CASES.entries()) {
    const sent = put(request, ODD_IDS[at % ODD_IDS.length] ?? '');
    assert.deepEqual(await through.post(sent), await direct.post(sent), name);
  }
});

for (const kind of ['http', 'stdio', 'sse'] as const)
  test(
    `${kind}: a list from the cache has the bytes of the first answer, under each agent’s own id`,
    PATIENCE,
    async (t) => {
      const answers = new Map(
        Object.entries(ODD_LISTS).map(([method, result]) => [
          method,
          `{"jsonrpc":"2.0","more":1.0,"result":${result},"id":${ID},"x":{"\\u0061":0}}`,
        ]),
      );
      const [entry, count, close] = await (async () => {
        if (kind === 'http') {
          const http = await HttpUpstream.start();
          http.serveSessions('/mcp', ({ json }, response) => {
            const answer = put(answers.get(json.method) ?? '', String(json.id));
            response.play({ headers: JSON_BODY, chunks: [answer] });
          });
          return [{ url: http.url() }, (method: string) => http.count(method), () => http.stop()] as const;
        }
        const channel = await ChannelServer.start(kind);
        for (const [method, answer] of answers)
          channel.on[method] = ({ message }) => {
            channel.say(put(answer, String(message.id)));
            return undefined;
          };
        return [channel.entry, (method: string) => channel.count(method), () => channel.close()] as const;
      })();
      const bench = await forwarding(t, { servers: { one: entry }, behind: [{ close }] });
      const agents = [await bench.agent(), await bench.agent()];
      for (const [method, answer] of answers) {
        for (const [at, id] of ODD_IDS.entries()) {
          const request = `{"jsonrpc":"2.0","id":${id},"method":"${method}"}`;
          assert.equal((await agents[at % 2]?.post(request))?.text, put(answer, id), method);
        }
        assert.equal(count(method), 1, method);
      }
    },
  );

test('a resource from the cache has the bytes of the first answer', PATIENCE, async (t) => {
  const server = await HttpUpstream.start();
  const contents = '"contents":[{"uri":"a","text":"\\u0061","n":1.0}]';
  const sent = `{"jsonrpc":"2.0","id":${ID},"result":{"ttlMs":60000,${contents}}}`;
  const answer = `{"jsonrpc":"2.0","id":${ID},"result":{${contents}}}`;
  server.serveSessions('/mcp', ({ json }, response) =>
    response.play({ headers: JSON_BODY, chunks: [put(sent, String(json.id))] }),
  );
  const bench = await forwarding(t, {
    servers: { one: { url: server.url() } },
    behind: [{ close: () => server.stop() }],
  });
  const agent = await bench.agent();
  for (const id of ODD_IDS) {
    const request = `{"jsonrpc":"2.0","id":${id},"method":"resources/read","params":{"uri":"a","_meta":{"n":1}}}`;
    assert.equal((await agent.post(request)).text, put(answer, id));
  }
  assert.equal(server.count('resources/read'), 1);
});

for (const kind of ['stdio', 'sse'] as const) {
  const carries = kind === 'stdio' ? onOneLine : asIs;

  test(`${kind}: notifications of any name pass both ways, every byte of them`, PATIENCE, async (t) => {
    const server = await ChannelServer.start(kind);
    const bench = await forwarding(t, { servers: { one: server.entry }, behind: [server] });
    const { agent, stream } = await bench.listener();
    await server.until(() => server.count('notifications/initialized') === 1);
    for (const [name, json] of Object.entries(ODD_OBJECTS)) {
      const text = `{ "params":${json},"method":"notifications\\/vendor" ,"more":[1.0], "jsonrpc":"2.0"}`;
      const before = server.raw.length;
      assert.equal((await agent.post(text)).status, 202);
      await server.until(() => server.raw.length > before);
      assert.equal(server.raw.at(-1), carries(text), name);
      server.say(carries(text));
      assert.equal(await nextText(stream), carries(text), name);
    }
  });

  test(
    `${kind}: questions of any name and their answers pass, every byte but the id`,
    PATIENCE,
    async (t) => {
      const server = await ChannelServer.start(kind);
      const bench = await forwarding(t, { servers: { one: server.entry }, behind: [server] });
      const { agent, stream } = await bench.listener();
      await server.until(() => server.count('notifications/initialized') === 1);
      let at = 0;
      for (const [name, json] of Object.entries(ODD_OBJECTS)) {
        const id = ODD_IDS[at++ % ODD_IDS.length] ?? '';
        const question = `{"jsonrpc":"2.0", "id" : ${ID},"method":"foo\\/bar","params":${asked(json)},"more":{}}`;
        server.say(carries(put(question, id)));
        const heard = await nextText(stream);
        assert.equal(heard, carries(put(question, idOf(heard))), name);
        const answer =
          at % 2
            ? `{"result":${json}, "id" : ${ID},"jsonrpc":"2.0","x":1.0}`
            : `{"jsonrpc":"2.0","error":{"code":7,"message":"","data":${json}},"id":${ID}}`;
        const before = server.raw.length;
        await agent.post(put(answer, idOf(heard)));
        await server.until(() => server.raw.length > before);
        assert.equal(server.raw.at(-1), carries(put(answer, id)), name);
      }
    },
  );
}

test(
  'http: what comes on the general stream and goes back keeps every byte but the id',
  PATIENCE,
  async (t) => {
    const server = await HttpUpstream.start();
    server.serveSessions();
    const bench = await forwarding(t, {
      servers: { one: { url: server.url(), type: 'http' } },
      behind: [{ close: () => server.stop() }],
    });
    const { agent, stream } = await bench.listener();
    await server.received('GET');
    const general = server.responses[server.seen.findIndex(({ method }) => method === 'GET')];
    for (const [name, json] of Object.entries(ODD_OBJECTS)) {
      const notice = `{ "params":${json},"method":"notifications\\/vendor" ,"more":[1.0], "jsonrpc":"2.0"}`;
      general?.write(asEvent(notice));
      assert.equal(await nextText(stream), notice, name);
      const question = `{"jsonrpc":"2.0", "id" : ${ID},"method":"foo","params":${asked(json)}}`;
      general?.write(asEvent(put(question, '"\\u0061"')));
      const heard = await nextText(stream);
      assert.equal(heard, put(question, idOf(heard)), name);
      const answer = `{"result":${json}, "id" : ${ID},"jsonrpc":"2.0"}`;
      const before = server.seen.length;
      for (const text of [put(answer, idOf(heard)), notice]) await agent.post(text);
      await server.until(() => server.seen.length === before + 2);
      const bodies = server.seen.slice(before).map(({ body }) => body);
      assert.deepEqual(bodies.sort(), [put(answer, '"\\u0061"'), notice].sort(), name);
    }
  },
);

test(
  'a progress token is the gateway’s own at the server and the agent’s own at the agent, in any spelling',
  PATIENCE,
  async (t) => {
    const server = await ChannelServer.start('stdio');
    const bench = await forwarding(t, { servers: { one: server.entry }, behind: [server] });
    const agent = await bench.agent();
    const TOKEN = '¶';
    const params = `{"name":"x","arguments":{"progressToken":1.0,"_meta":{"progressToken":2}},"_meta":{ "a":[1.0],"\\u0070rogressToken" : ${TOKEN} ,"z":0}}`;
    const notice = `{"params":{"progress":0.10,"x":{"progressToken":3},"progressToken" : ${TOKEN},"total":1e0 },"jsonrpc":"2.0","method":"notifications\\/progress"}`;
    server.on['tools/call'] = ({ raw }) => {
      server.say(notice.replace(TOKEN, /rogressToken" : (\d+) /.exec(raw)?.[1] ?? ''));
      return '{}';
    };
    for (const token of ODD_IDS) {
      const text = requestOf(
        'tools/call',
        params.replace(TOKEN, () => token),
      );
      const answer = await agent.open(put(text, '5'), { accept: 'text/event-stream' });
      assert.equal(
        await nextText(answer),
        notice.replace(TOKEN, () => token),
      );
      assert.equal(await nextText(answer), '{"jsonrpc":"2.0","id":5,"result":{}}');
      const received = server.raw.at(-1) ?? '';
      const own = /rogressToken" : (\d+) /.exec(received)?.[1] ?? '';
      assert.equal(received, put(requestOf('tools/call', params.replace(TOKEN, own)), idOf(received)));
    }
  },
);
