import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/base/errors.js';
import { Asks } from '../../src/downstream/asks.js';
import { notification, request, result } from '../../src/protocol/compose.js';
import { type Message, readMessage } from '../../src/wire/message.js';

class Wire {
  readonly sent: Message[] = [];
  there = true;

  send(bytes: Buffer): boolean {
    if (this.there) this.sent.push(readMessage(bytes));
    return this.there;
  }

  get last(): Message {
    return this.sent.at(-1) as Message;
  }
}

function asking() {
  const wire = new Wire();
  const asks = new Asks('one');
  const aborter = new AbortController();
  const heard: string[] = [];
  const options = {
    signal: aborter.signal,
    onNotification: (message: Message) => heard.push(message.bytes.toString()),
  };
  return { wire, asks, aborter, heard, options };
}

const withCode = (code: string) => (error: unknown) => error instanceof GatewayError && error.code === code;
const ELICIT = request('"srv"', 'elicitation/create', {
  message: 'Name?',
  _meta: { progressToken: 'tok', v: 1 },
});

test('each request gets an id of its own, and the agent answer with that id settles it', async () => {
  const { wire, asks, options } = asking();
  const first = asks.ask(wire, request('0', 'roots/list'), options);
  const second = asks.ask(wire, request('0', 'roots/list'), options);
  const [one, two] = wire.sent as [Message, Message];
  assert.notEqual(one.id, two.id);
  asks.settle(result(two.id, { roots: [2] }));
  asks.settle(result(one.id, { roots: [1] }));
  assert.match((await first).bytes.toString(), /\[1\]/);
  assert.match((await second).bytes.toString(), /\[2\]/);
});

test('a request differs in id and progress token only', () => {
  const { wire, asks, options } = asking();
  void asks.ask(wire, ELICIT, options);
  const id = wire.last.id;
  assert.equal(
    wire.last.bytes.toString(),
    ELICIT.bytes.toString().replace('"id":"srv"', `"id":${id}`).replace('"tok"', id),
  );
});

test('progress of the agent reaches the server with its own token, and only that of open requests', () => {
  const { wire, asks, heard, options } = asking();
  void asks.ask(wire, ELICIT, options);
  void asks.ask(wire, request('5', 'roots/list'), options);
  const [id, without] = wire.sent.map((message) => Number(message.id));
  asks.progress(notification('notifications/progress', { progressToken: id, progress: 0.5 }));
  asks.progress(notification('notifications/progress', { progressToken: without, progress: 1 }));
  asks.progress(notification('notifications/progress', { progressToken: 'tok', progress: 1 }));
  asks.progress(notification('notifications/progress', {}));
  assert.deepEqual(heard, [
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":0.5}}',
  ]);
});

test('a withdrawn request is withdrawn from the agent in the server words, with the id the agent knows', async () => {
  const { wire, asks, aborter, options } = asking();
  const answer = asks.ask(wire, ELICIT, options);
  const { id } = wire.last;
  aborter.abort(notification('notifications/cancelled', { requestId: 'srv', reason: 'too late' }));
  await assert.rejects(answer, withCode('cancelled'));
  assert.deepEqual(JSON.parse(wire.last.bytes.toString()).params, {
    requestId: Number(id),
    reason: 'too late',
  });
});

test('a request withdrawn without a word is withdrawn from the agent all the same', async () => {
  const { wire, asks, aborter, options } = asking();
  const answer = asks.ask(wire, ELICIT, options);
  const { id } = wire.last;
  aborter.abort();
  await assert.rejects(answer, withCode('cancelled'));
  assert.deepEqual(JSON.parse(wire.last.bytes.toString()).params, { requestId: Number(id) });
});

test('a request already withdrawn is never sent', async () => {
  const { wire, asks, aborter, options } = asking();
  aborter.abort();
  await assert.rejects(asks.ask(wire, ELICIT, options), withCode('cancelled'));
  assert.equal(wire.sent.length, 0);
});

test('an agent that is not there cannot be asked', async () => {
  const { wire, asks, options } = asking();
  wire.there = false;
  await assert.rejects(asks.ask(wire, ELICIT, options), withCode('agent_unreachable'));
});

test('when the agent goes, every open request fails', async () => {
  const { wire, asks, options } = asking();
  const answers = [asks.ask(wire, ELICIT, options), asks.ask(wire, ELICIT, options)];
  asks.close();
  for (const answer of answers) await assert.rejects(answer, withCode('agent_unreachable'));
});

test('answers to nothing, late ones and twice-given ones are dropped', async () => {
  const { wire, asks, options } = asking();
  asks.settle(result('1', {}));
  const answer = asks.ask(wire, ELICIT, options);
  asks.settle(result(`"${wire.last.id}"`, { wrong: 'type' }));
  asks.settle(result(wire.last.id, { first: true }));
  asks.settle(result(wire.last.id, { second: true }));
  assert.match((await answer).bytes.toString(), /first/);
});
