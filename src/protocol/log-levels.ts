/** RFC 5424 severities, least severe first. https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging */
export const LOG_LEVELS: readonly string[] = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
];

/** Place of a level among them; -1 for what is no level. */
export function severity(level: string | undefined): number {
  return level === undefined ? -1 : LOG_LEVELS.indexOf(level);
}
