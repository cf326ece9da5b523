/**
 * The client under test of the suite's client scenarios, on the official SDKs: the first line for 2025-11-25, the
 * second for 2026-07-28.
 *
 *   MCP_CONFORMANCE_SCENARIO=… node --import tsx test/conformance/client/main.ts [--legacy] URL
 */
import { runLegacy } from './legacy.js';
import { runModern } from './modern.js';

const args = process.argv.slice(2);
const url = args.at(-1);
const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? '';
if (!url || !scenario) throw new Error('usage: MCP_CONFORMANCE_SCENARIO=… main.ts [--legacy] URL');
await (args.includes('--legacy') ? runLegacy(scenario, url) : runModern(scenario, url));
