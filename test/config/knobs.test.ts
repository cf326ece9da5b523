import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { describeKnobs } from '../../src/config/knobs.js';
import { loadConfig } from '../../src/config/load.js';
import { settingKeys } from '../../src/config/schema.js';
import { ENV_EXAMPLE, envExample, knobTable, knobTableIn, README } from '../support/knobs.js';

describe('the documentation of the settings', () => {
  it('names every one of them with a description', () => {
    const knobs = describeKnobs();
    assert.deepEqual(
      knobs.flatMap(({ setting }) => setting ?? []),
      settingKeys(),
    );
    for (const knob of knobs) assert.match(knob.description, /^[A-Z].*\.$/s, knob.variable);
  });

  it('in .env.example is what the schema says', () => {
    assert.equal(readFileSync(ENV_EXAMPLE, 'utf8'), envExample(), 'run `npm run docs`');
  });

  it('in the README is what the schema says', () => {
    assert.equal(knobTableIn(readFileSync(README, 'utf8')), knobTable(), 'run `npm run docs`');
  });

  it('shows defaults that change nothing when they are set', async () => {
    const given = describeKnobs().filter(({ variable }) => variable !== 'SIDEGATE_CONFIG');
    const env = Object.fromEntries(given.map(({ variable, fallback }) => [variable, fallback]));
    const source = { kind: 'embedded' } as const;
    const [plain, explicit] = await Promise.all([
      loadConfig({ env: {}, source }),
      loadConfig({ env, source }),
    ]);
    assert.ok(plain.ok && explicit.ok);
    assert.deepEqual(explicit.config, plain.config);
  });
});
