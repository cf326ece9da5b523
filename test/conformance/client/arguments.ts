/** Arguments that a tool's schema asks for, as the suite passes them to its clients where it cares. */
interface ContextCall {
  readonly name: string;
  readonly arguments?: Record<string, unknown>;
}

/** The calls that the suite wants made, where it says so. */
function wantedCalls(): ContextCall[] {
  const context = process.env['MCP_CONFORMANCE_CONTEXT'];
  const { toolCalls = [] } = context ? (JSON.parse(context) as { toolCalls?: ContextCall[] }) : {};
  return toolCalls;
}

/** A tool that wants the schema of another one back, as it was received. */
const ECHO = 'json_schema_echo';

interface Listed {
  readonly name: string;
  readonly inputSchema: unknown;
}

/** What is called: what the suite wants, or every tool with what it asks for. */
export function callsFor(tools: readonly Listed[]): ContextCall[] {
  const wanted = wantedCalls();
  if (wanted.length > 0) return wanted;
  const schema = tools.find(({ name }) => name !== ECHO)?.inputSchema;
  return tools.map(({ name, inputSchema }) => ({
    name,
    arguments: name === ECHO ? { schema } : argumentsFor(inputSchema),
  }));
}

/** Something of each type for what a tool requires. */
function argumentsFor(inputSchema: unknown): Record<string, unknown> {
  const { properties = {} } = (inputSchema ?? {}) as { properties?: Record<string, { type?: unknown }> };
  const entries = Object.entries(properties).map(([name, { type }]) => [name, sampleOf(type)]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}

function sampleOf(type: unknown): unknown {
  switch (type) {
    case 'number':
    case 'integer':
      return 2;
    case 'boolean':
      return true;
    case 'object':
      return {};
    case 'array':
      return [];
    default:
      return 'text';
  }
}
