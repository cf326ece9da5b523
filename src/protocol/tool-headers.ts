/** One argument of a tool that its callers mirror in a header. */
export interface MirroredParam {
  /** The whole name, as the schema spells its end: `Mcp-Param-Region`. */
  readonly header: string;
  /** The property names that lead to the argument. */
  readonly path: readonly string[];
  readonly type: 'string' | 'integer' | 'boolean';
}

/** The mirrored arguments of one tool; empty where there are none. */
export type HeaderPlan = readonly MirroredParam[];
