/** What the servers of the matrix offer, under the same names in both eras. */
export const WATCHED = 'test://watched';
export const PROMPT = 'greet';
/** A code of the application's own, and what comes with it. */
export const FAILURE = { code: 4711, message: 'It went wrong', data: { hint: ['try', 2 ** 40] } };
export const FORM = {
  message: 'Who are you?',
  requestedSchema: {
    type: 'object' as const,
    properties: { name: { type: 'string' as const } },
    required: ['name'],
  },
};
export const PAGE = { message: 'Please sign in', url: 'https://example.com/sign-in' };
export const SAMPLE = {
  messages: [{ role: 'user' as const, content: { type: 'text' as const, text: 'Say something' } }],
  maxTokens: 10,
};

export const TOOLS = [
  'echo',
  'progress',
  'wait',
  'aborted',
  'log',
  'change',
  'touch',
  'ask-form',
  'ask-url',
  'sample',
  'roots',
  'fail',
] as const;

export function definition(name: string) {
  return { name, description: `Does ${name}`, inputSchema: { type: 'object' as const } };
}

export function text(value: string) {
  return { content: [{ type: 'text' as const, text: value }] };
}

export const RESOURCE = { uri: WATCHED, name: 'watched' };
export const CONTENTS = { contents: [{ uri: WATCHED, mimeType: 'text/plain', text: 'seen' }] };
export const PROMPT_RESULT = {
  messages: [{ role: 'user' as const, content: { type: 'text' as const, text: 'Hello' } }],
};
export const COMPLETION = { completion: { values: ['Ada', 'Alan'], total: 2, hasMore: false } };
