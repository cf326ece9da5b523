import { createRequire } from 'node:module';
import type { RawDocument } from './document.js';

/** Id of the server that is served when nothing is configured. */
export const EMBEDDED_SERVER_ID = 'everything';

/** A configuration for a first try: the bundled server with every feature of the protocol, over stdio. */
export function embeddedDocument(): RawDocument {
  const entry = createRequire(import.meta.url).resolve(
    '@modelcontextprotocol/server-everything/dist/index.js',
  );
  const value = { command: process.execPath, args: [entry, 'stdio'] };
  const servers = [{ id: EMBEDDED_SERVER_ID, value, problem: undefined }];
  return { serversKey: 'mcpServers', servers, settings: new Map() };
}
