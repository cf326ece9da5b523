/** Dated versions of the protocol with an `initialize` handshake, oldest first. */
export const LEGACY_REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const;
export type LegacyRevision = (typeof LEGACY_REVISIONS)[number];

export const LATEST_LEGACY_REVISION: LegacyRevision = '2025-11-25';
/** What a request without `MCP-Protocol-Version` and without a session is taken to speak. */
export const ASSUMED_LEGACY_REVISION: LegacyRevision = '2025-03-26';

/** `legacy`: sessions begun by `initialize`. `modern`: 2026-07-28 and later, every request for itself. */
export type Era = 'legacy' | 'modern';

/** Dated versions without a handshake, oldest first. */
export const MODERN_REVISIONS = ['2026-07-28'] as const;
export type ModernRevision = (typeof MODERN_REVISIONS)[number];

export const LATEST_MODERN_REVISION: ModernRevision = '2026-07-28';

export function isModernRevision(version: unknown): version is ModernRevision {
  return MODERN_REVISIONS.includes(version as ModernRevision);
}

/** Era of a revision that is spoken; anything else is never taken as newer. */
export function eraOf(revision: string): Era {
  return isModernRevision(revision) ? 'modern' : 'legacy';
}

export function isLegacyRevision(version: unknown): version is LegacyRevision {
  return LEGACY_REVISIONS.includes(version as LegacyRevision);
}

/**
 * The revision an `initialize` is answered with: the one asked for if it is known and the server speaks it or a later
 * one, else the newest that both can.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#version-negotiation
 */
export function negotiateLegacy(asked: unknown, upstream: string): string {
  const newest = isLegacyRevision(upstream) ? upstream : LATEST_LEGACY_REVISION;
  return isLegacyRevision(asked) && asked <= newest ? asked : newest;
}
