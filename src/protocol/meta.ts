/**
 * Members of `_meta` that 2026-07-28 reserves.
 * https://modelcontextprotocol.io/specification/2026-07-28/basic#meta
 */
export const PROTOCOL_VERSION_META = 'io.modelcontextprotocol/protocolVersion';
export const CLIENT_INFO_META = 'io.modelcontextprotocol/clientInfo';
export const CLIENT_CAPABILITIES_META = 'io.modelcontextprotocol/clientCapabilities';
export const LOG_LEVEL_META = 'io.modelcontextprotocol/logLevel';
export const SERVER_INFO_META = 'io.modelcontextprotocol/serverInfo';
export const SUBSCRIPTION_ID_META = 'io.modelcontextprotocol/subscriptionId';

/** Identifier of the tasks extension. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';
