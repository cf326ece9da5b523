import type { Tool } from '@modelcontextprotocol/sdk/types.js';
import type { Command } from './args.js';
import { idsOf, serverIdOf } from './configuration.js';
import { reasonOf, withManager } from './session.js';
import { columns, complain, print, printable, printableJson } from './terminal.js';
import { EXIT_FAILURE, EXIT_OK } from './usage.js';

interface Listing {
  readonly id: string;
  readonly tools: readonly Tool[] | undefined;
}

/** Prints the tools of one server or of all of them. */
export async function tools(command: Extract<Command, { name: 'tools' }>): Promise<number> {
  const { fresh, json, selection } = command;
  return withManager(selection, async (manager, loaded) => {
    const { server } = selection;
    const ids = server === undefined ? idsOf(loaded.config) : [serverIdOf(loaded, server)];
    const list = async (id: string): Promise<Listing> => {
      try {
        return { id, tools: await manager.listTools(id, { fresh }) };
      } catch (failure) {
        complain(reasonOf(failure));
        return { id, tools: undefined };
      }
    };
    const listings = await Promise.all(ids.map(list));
    print(json ? asJson(listings) : asText(listings));
    return listings.every((listing) => listing.tools) ? EXIT_OK : EXIT_FAILURE;
  });
}

/** An object of server id to tools, each as the server described it. A server that failed is left out. */
function asJson(listings: readonly Listing[]): string {
  const good = listings.filter((listing) => listing.tools);
  return printableJson(Object.fromEntries(good.map(({ id, tools: found }) => [id, found])));
}

function asText(listings: readonly Listing[]): string {
  const blocks = listings.flatMap(({ id, tools: found }) => {
    if (!found) return [];
    const rows = found.map(({ name, description }) => [`  ${printable(String(name))}`, summary(description)]);
    return [[`${printable(id)} (${found.length})`, ...columns(rows)].join('\n')];
  });
  return blocks.join('\n\n');
}

const SUMMARY_CHARS = 100;

/** The first line of a description, cut. */
function summary(description: unknown): string {
  const [first = ''] = typeof description === 'string' ? description.trim().split('\n') : [];
  const chars = [...printable(first)];
  return chars.length > SUMMARY_CHARS ? `${chars.slice(0, SUMMARY_CHARS - 1).join('')}…` : chars.join('');
}
