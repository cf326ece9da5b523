import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PATIENCE } from '../support/forwarding.js';
import { CHANGES, MODERN, officialListener, officialServer, WATCHED } from '../support/official-listener.js';

test(
  'official clients hear of the official server what they asked for, and see the new lists',
  PATIENCE,
  async (t) => {
    const url = await officialServer(t, { modernOnly: true });
    const tools = await officialListener(t, url, MODERN);
    const resources = await officialListener(t, url, MODERN);
    const first = await tools.client.listen({ toolsListChanged: true });
    assert.deepEqual(first.honoredFilter, { toolsListChanged: true });
    const second = await resources.client.listen({
      resourceSubscriptions: [WATCHED],
      promptsListChanged: true,
    });
    assert.deepEqual(second.honoredFilter, { promptsListChanged: true, resourceSubscriptions: [WATCHED] });
    const before = await tools.client.listTools();
    await resources.client.callTool({ name: CHANGES.tools });
    await tools.heard('tools/list_changed');
    const after = await tools.client.listTools();
    assert.equal(after.tools.length, before.tools.length + 1);
    await tools.client.callTool({ name: CHANGES.resource });
    await resources.heard(`resources/updated ${WATCHED}`);
    await tools.client.callTool({ name: CHANGES.prompts });
    await resources.heard('prompts/list_changed');
    assert.deepEqual(tools.told.all, ['tools/list_changed']);
    await first.close();
    assert.equal(await first.closed, 'local');
    await second.close();
  },
);
