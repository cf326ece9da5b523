import type { AgentProfile } from '../pipeline/exchange.js';
import { mayAskForInput } from '../protocol/methods.js';
import { member } from '../wire/json.js';
import type { Message } from '../wire/message.js';
import { paramOf, stringIn } from './members.js';

/**
 * Whether a server may ask this within a request of that method: the agent declared that it answers such questions. A
 * server must not learn the difference between "cannot" and "did not say so".
 * https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow
 */
export function mayBeAsked(profile: AgentProfile, method: string, question: Message): boolean {
  // A task asks while its result is waited for.
  if (!mayAskForInput(method) && method !== 'tasks/result') return false;
  const has = (...path: string[]) => declares(profile, ...path);
  switch (question.method) {
    case 'elicitation/create':
      return isUrl(question) ? has('elicitation', 'url') : has('elicitation') && takesForms(profile);
    case 'sampling/createMessage':
      return paramOf(question, 'tools') ? has('sampling', 'tools') : has('sampling');
    case 'roots/list':
      return has('roots');
    default:
      return false;
  }
}

/** Whether a question is one that sends a person to a URL. */
export function isUrl(question: Message): boolean {
  return stringIn(question, paramOf(question, 'mode')) === 'url';
}

/** Whether the agent declared a capability, or a member below one. */
export function declares({ capabilities }: AgentProfile, ...path: string[]): boolean {
  return member(Buffer.from(capabilities), 0, ...path) !== undefined;
}

/** An empty declaration is one of forms. */
function takesForms(profile: AgentProfile): boolean {
  return declares(profile, 'elicitation', 'form') || !declares(profile, 'elicitation', 'url');
}
