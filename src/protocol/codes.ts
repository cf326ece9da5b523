/** JSON-RPC 2.0 and MCP error codes. https://www.jsonrpc.org/specification#error_object */
export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;
/** URL elicitation required, 2025-11-25. */
export const URL_ELICITATION_REQUIRED = -32042;
/** Resource not found, up to 2025-11-25. */
export const RESOURCE_NOT_FOUND = -32002;

/** Codes of 2026-07-28. https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes */
export const HEADER_MISMATCH = -32020;
export const MISSING_CLIENT_CAPABILITY = -32021;
export const UNSUPPORTED_PROTOCOL_VERSION = -32022;
