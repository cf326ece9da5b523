import { McpManager } from '../../src/index.js';

// Lists the tools of one stdio server and does nothing more: the process ends when nothing holds it. Arguments: the
// server's command line. Prints the names.
const [command, ...args] = process.argv.slice(2);
const manager = new McpManager({ mcpServers: { one: { command, args } } });
const names = (await manager.listTools('one')).map(({ name }) => name);
process.stdout.write(names.join(' '));
